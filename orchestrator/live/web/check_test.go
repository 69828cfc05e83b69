package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"kernsweep/orchestrator/results"
)

// checks gives what is wrong with a page, in words.
const checks = `(() => {
  const bad = [];
  const root = document.documentElement;
  const visible = e => e.checkVisibility({visibilityProperty: true}) && !e.closest(".unseen, .skip, .cards thead") && e.getClientRects().length > 0;
  const named = e => (e.getAttribute("aria-label") || (e.labels && e.labels[0] && e.labels[0].innerText) || e.innerText || e.title || "").trim();
  if (root.scrollWidth > root.clientWidth) {
    bad.push("it is " + root.scrollWidth + " wide on a screen of " + root.clientWidth);
    for (const e of document.querySelectorAll("main *")) if (e.getBoundingClientRect().right > root.clientWidth + 1 && !e.closest(".scroll")) { bad.push("too wide: " + e.outerHTML.slice(0, 200)); break; }
  }
  if (root.lang !== "en") bad.push("no language");
  if (!document.title) bad.push("no title");
  if (document.querySelectorAll("h1").length !== 1) bad.push("not one h1");
  if (document.querySelectorAll("main").length !== 1) bad.push("not one main");
  let level = 0;
  for (const h of document.querySelectorAll("h1,h2,h3,h4,h5,h6")) {
    const n = Number(h.tagName[1]);
    if (n > level + 1) bad.push("heading jumps to " + h.outerHTML);
    level = n;
  }
  const ids = new Set();
  for (const e of document.querySelectorAll("[id]")) { if (ids.has(e.id)) bad.push("two have the id " + e.id); ids.add(e.id); }
  for (const e of document.querySelectorAll("[aria-labelledby],[aria-describedby]"))
    for (const id of (e.getAttribute("aria-labelledby") || e.getAttribute("aria-describedby")).split(" ")) if (!ids.has(id)) bad.push("no " + id);
  for (const e of document.querySelectorAll("a[href],button,input:not([type=hidden]),[role=group],progress,summary"))
    if (!named(e) && e.checkVisibility()) bad.push("no name: " + e.outerHTML.slice(0, 200));
  for (const e of document.querySelectorAll("th")) if (!e.scope) bad.push("th without scope: " + e.outerHTML);
  for (const e of document.querySelectorAll("table")) if (!e.caption) bad.push("table without caption");
  for (const e of document.querySelectorAll("main *")) {
    const s = getComputedStyle(e);
    if (visible(e) && !e.closest("thead") && /hidden|clip/.test(s.overflowX) && e.scrollWidth > e.clientWidth + 1 && e.tagName !== "INPUT" && e.tagName !== "PROGRESS") bad.push("cut off: " + e.outerHTML.slice(0, 200));
  }
  const colour = c => { const m = c.match(/[\d.]+/g).map(Number); return {r: m[0], g: m[1], b: m[2], a: m.length > 3 ? m[3] : 1}; };
  const light = c => { const f = v => { v /= 255; return v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); }; return 0.2126 * f(c.r) + 0.7152 * f(c.g) + 0.0722 * f(c.b); };
  const under = e => { for (; e; e = e.parentElement) { const c = colour(getComputedStyle(e).backgroundColor); if (c.a === 1) return c; } return {r: 255, g: 255, b: 255}; };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || !visible(e)) continue;
    const s = getComputedStyle(e), a = light(colour(s.color)), b = light(under(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(s.fontSize), large = size >= 24 || size >= 18.66 && Number(s.fontWeight) >= 700;
    const what = s.color + " " + ratio.toFixed(2);
    if (ratio < (large ? 3 : 4.5) && !seen.has(what)) { seen.add(what); bad.push("contrast " + what + ": " + n.data.trim().slice(0, 40)); }
  }
  return bad;
})()`

func checkPage(b *tab, what string) {
	b.t.Helper()
	for _, fault := range eval[[]string](b, checks) {
		b.t.Errorf("%s: %s", what, fault)
	}
	if s := eval[string](b, `[document.title.includes("owned"), document.scripts.length, document.images.length, document.querySelectorAll("iframe,object,embed").length].join()`); s != "false,1,0,0" && !strings.Contains(what, "evil lane") {
		b.t.Errorf("%s: title, scripts, pictures and frames are %s", what, s)
	}
}

// The checks find what they are for.
func TestTheChecksCanFail(t *testing.T) {
	b := newTab(t, chromium(t))
	b.size(360, false)
	b.open(`data:text/html,<meta name=viewport content="width=device-width"><title></title><h3 id=a style="color:%23aaa">grey</h3><p id=a style="width:900px">wide</p><a href="/"></a><input><table><tr><th>x</table><div style="overflow:hidden;width:20px;white-space:nowrap">much text</div>`)
	found := strings.Join(eval[[]string](b, checks), "\n")
	for _, want := range []string{"wide", "no language", "no title", "not one h1", "heading jumps", "two have the id", "no name: <a", "no name: <input", "without scope", "without caption", "contrast"} {
		if !strings.Contains(found, want) {
			t.Errorf("%q is not found in:\n%s", want, found)
		}
	}
}

// The keyboard reaches everything, in the order of the page, and shows where it is.
func TestKeyboard(t *testing.T) {
	_, s, pages := shown(t)
	base := serve(t, s)
	b := newTab(t, chromium(t))
	b.size(1280, false)
	for _, name := range []string{"lane", "confirm", "files", "targets"} {
		b.open(base + pages[name])
		want := eval[int](b, `(() => { let n = 0; for (const e of document.querySelectorAll("a[href],button,input:not([type=hidden]),summary,[tabindex='0']")) if (e.checkVisibility()) e.dataset.tab = ++n; return n; })()`)
		for i := 1; i <= want; i++ {
			b.do(chromedp.KeyEvent(kb.Tab))
			got := eval[string](b, `(() => { const e = document.activeElement, s = getComputedStyle(e); return e.dataset.tab + " " + (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2); })()`)
			if got != fmt.Sprint(i, " true") {
				t.Errorf("%s: Tab %d of %d leads to %s: %s", name, i, want, got, eval[string](b, `document.activeElement.outerHTML.slice(0, 200)`))
				break
			}
		}
	}
	b.clean("keyboard")
}

// What happens reaches an open page by itself, as text; the page of a lane shows
// its console.
func TestLivePage(t *testing.T) {
	l := newLab(t)
	n := l.newNight("tonight", 2, "box")
	s := l.page(Options{})
	base := serve(t, s)
	browser := chromium(t)
	b := newTab(t, browser)
	b.open(base + "/runs/" + n.run.Name())
	b.until(`document.getElementById("stream").textContent.includes("follows")`)
	n.boots("box", "cfs", 1, results.OK)
	n.judged("box", "cfs", 1, 1, results.OK, "")
	n.judged("box", "cfs", 1, 2, results.Failed, `<img src=x onerror="document.title='owned'">`)
	b.until(`document.getElementById("l0-outcomes").textContent === "1 ok, 1 failed" && document.getElementById("done").textContent === "2 of 4" && document.getElementById("bar").value === 2`)
	b.until(`document.querySelector("#events .bad").textContent.includes("<img")`)

	c := newTab(t, browser)
	w := l.console("box")
	c.open(base + "/runs/" + n.run.Name() + "/lanes/box")
	write := func(text string) {
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("\x1b[31mboot\x1b[0m \x1b]0;owned\x07<script>document.title='owned'</script>\r\nlogin: ")
	c.until(`document.getElementById("console").textContent === "boot <script>document.title='owned'</script>\nlogin: "`)
	write("root\n")
	c.until(`document.getElementById("console").textContent.endsWith("login: root\n") && document.getElementById("consolestate").textContent === "Recorded by run x, boot 1"`)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c.until(`document.getElementById("consolestate").textContent.startsWith("Nobody records")`)

	n.end("box")
	b.until(`document.getElementById("stream").textContent.startsWith("The run is over: ended")`)
	c.until(`document.getElementById("consolestate").textContent === "The run is over."`)
	if title := eval[string](b, "document.title") + eval[string](c, "document.title"); strings.Contains(title, "owned") {
		t.Errorf("titles: %s", title)
	}
	b.clean("run")
	c.clean("lane")
}

// Without scripts everything can be read, and asked for.
func TestWithoutScripts(t *testing.T) {
	l := newLab(t)
	l.steer()
	n := l.newNight("tonight", 2, "box")
	n.boots("box", "cfs", 1, results.OK)
	base := serve(t, l.page(Options{}))
	b := newTab(t, chromium(t))
	if _, err := chromedp.Call(b.Context, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	b.open(base + "/runs/" + n.run.Name())
	text, err := chromedp.Run(b.Context, chromedp.Text(chromedp.CSS("main")))
	if err != nil || !strings.Contains(text, "Reload this page") || !strings.Contains(text, "boot 001 cfs: ok") || !strings.Contains(text, "box") {
		t.Errorf("%v:\n%s", err, text)
	}
	b.do(chromedp.Navigate(base+"/runs/"+n.run.Name()+"/lanes/box"), chromedp.Click(chromedp.CSS(".actions a")), chromedp.WaitReady(chromedp.CSS("#why")),
		chromedp.SendKeys(chromedp.CSS("#why"), "the fan is loud"), chromedp.Click(chromedp.CSS("form button")), chromedp.WaitReady(chromedp.CSS("p[role=status]")))
	text, err = chromedp.Run(b.Context, chromedp.Text(chromedp.CSS("main")))
	if err != nil || !strings.Contains(text, "pauses after this trial") {
		t.Errorf("%v:\n%s", err, text)
	}
	if r := l.requests(); len(r) != 1 || r[0].Lane != "box" || r[0].Action != "pause" || r[0].Why != "the fan is loud" || r[0].By != "somebody at 127.0.0.1, kernsweep serve" {
		t.Errorf("asked: %+v", r)
	}
}

// A page of another origin can neither steer nor read, whatever it tries.
func TestOtherOrigins(t *testing.T) {
	l := newLab(t)
	l.steer()
	n := l.newNight("tonight", 2, "box")
	s := l.page(Options{})
	base := serve(t, s)
	other := http.NewServeMux()
	other.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<title>evil</title><form id=f method=post action="%[1]s/runs/%[2]s/control"><input name=action value=stop><input name=key value=x></form>
<iframe src="%[1]s/" id=i></iframe>`, base, n.run.Name())
	})
	evil := localServer(t, other)
	b := newTab(t, chromium(t))
	b.open(evil)
	for name, script := range map[string]string{
		"fetch":   `fetch("%s/runs/%s/control", {method: "POST", mode: "no-cors", credentials: "include", body: new URLSearchParams({action: "stop"})}).then(r => "sent " + r.status, e => "refused")`,
		"json":    `fetch("%s/api/runs/%s/control", {method: "POST", mode: "no-cors", headers: {"Content-Type": "application/json"}, body: '{"action":"stop"}'}).then(r => "sent " + r.status, e => "refused")`,
		"preread": `fetch("%s/api/runs/%s").then(r => r.text(), e => "refused")`,
	} {
		got, err := chromedp.Run(b.Context, chromedp.Evaluate[string](fmt.Sprintf(script, base, n.run.Name()), chromedp.EvalAwaitPromise))
		if err != nil || got != "refused" && got != "sent 0" { // 0: an answer that the page may not see
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
	stream := eval[string](b, fmt.Sprintf(`new EventSource("%s/runs/%s/events").url`, base, n.run.Name()))
	if stream == "" {
		t.Error("no stream was tried")
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("f").submit()`), chromedp.WaitReady(chromedp.CSS("main")))
	if text, err := chromedp.Run(b.Context, chromedp.Text(chromedp.CSS("main"))); err != nil || !strings.Contains(text, "another web page asked for this") {
		t.Errorf("%v %s", err, text)
	}
	if r := l.requests(); len(r) != 0 {
		t.Errorf("it steered: %+v", r)
	}
	if n := s.streams.Load(); n != 0 {
		t.Errorf("it follows %d streams", n)
	}
}
