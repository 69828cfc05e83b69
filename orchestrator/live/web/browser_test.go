package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"kernsweep/targets/targetstest"
)

// browserTime bounds what a test does in a browser, on a busy machine.
const browserTime = 2 * time.Minute

// chromium is a browser of its own for a test, ended with it.
func chromium(t *testing.T) context.Context {
	t.Helper()
	program := targetstest.Tool(t, "chromium", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
	home := t.TempDir()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.UserDataDir(filepath.Join(home, "profile")),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Env("HOME="+home),
		chromedp.WSURLReadTimeout(time.Minute))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	ctx, end := context.WithTimeout(context.Background(), browserTime)
	actx, stop := chromedp.NewExecAllocator(ctx, opts...)
	bctx, cancel := chromedp.NewContext(actx)
	t.Cleanup(func() {
		if err := chromedp.Cancel(bctx); err != nil {
			t.Log(err)
		}
		cancel()
		stop()
		end()
	})
	if err := chromedp.Do(bctx); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	return bctx
}

// tab is a page in the browser, and what went wrong on it.
type tab struct {
	context.Context
	t *testing.T

	mu     sync.Mutex
	faults []string
}

func newTab(t *testing.T, browser context.Context) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b := &tab{Context: ctx, t: t}
	err := chromedp.Listen(ctx, func(ev any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch ev := ev.(type) {
		case *log.EventEntryAdded:
			b.faults = append(b.faults, fmt.Sprintf("%s %s: %s", ev.Entry.Level, ev.Entry.Source, ev.Entry.Text))
		case *runtime.EventExceptionThrown:
			b.faults = append(b.faults, "exception: "+ev.ExceptionDetails.Text)
		case *page.EventJavascriptDialogOpening:
			b.faults = append(b.faults, "dialog: "+ev.Message)
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.Context, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// size of the screen, and its colours.
func (b *tab) size(width int64, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	_, err := chromedp.Call(b.Context, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 500})
	if err == nil {
		_, err = chromedp.Call(b.Context, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) open(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address), chromedp.WaitReady(chromedp.CSS("body")))
}

// clean fails the test for whatever the browser complained of.
func (b *tab) clean(what string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.t.Errorf("%s: %s", what, f)
	}
	b.faults = nil
}

// eval runs script in the page.
func eval[T any](b *tab, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.Context, chromedp.Evaluate[T](script))
	if err != nil {
		b.t.Fatalf("%v in %s", err, script)
	}
	return v
}

// until waits until a script is true.
func (b *tab) until(script string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.Context, chromedp.Poll[bool](script, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(30*time.Second))); err != nil {
		b.t.Fatalf("%s never became true (%v) on:\n%s", script, err, eval[string](b, "document.body.innerText"))
	}
}

// shot leaves a picture of the page where KERNSWEEP_SHOTS says, for eyes.
func (b *tab) shot(name string) {
	dir := os.Getenv("KERNSWEEP_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.Context, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, strings.NewReplacer("/", "_", " ", "_").Replace(name)+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
