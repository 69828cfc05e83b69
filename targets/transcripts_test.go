package targets

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// transcript is a file of testdata/console: what a console said, under a header
// that says what is right to say of it.
type transcript struct {
	name   string
	text   string
	stage  string // "" is a good boot
	says   string
	wanted string // glob of the release
	ready  string
	silent bool // the stage comes from the silence that follows
}

// transcripts reads them. The header ends with "----". In the text \e is an
// escape, \b a backspace, and a backslash at the end joins to no further line.
func transcripts(t testing.TB) []transcript {
	t.Helper()
	files, err := filepath.Glob("testdata/console/*.txt")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	var all []transcript
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		head, text, ok := strings.Cut(string(b), "----\n")
		if !ok {
			t.Fatalf("%s has no header", f)
		}
		tr := transcript{name: strings.TrimSuffix(filepath.Base(f), ".txt")}
		for _, line := range strings.Split(strings.TrimSpace(head), "\n") {
			key, value, _ := strings.Cut(line, ": ")
			switch key {
			case "stage":
				tr.stage = strings.TrimPrefix(value, "none")
			case "says":
				tr.says = value
			case "wanted":
				tr.wanted = value
			case "ready":
				tr.ready = value
			case "silent":
				tr.silent = true
			default:
				t.Fatalf("%s: header %q", f, line)
			}
		}
		text = strings.TrimSuffix(text, "\\\n")
		tr.text = strings.NewReplacer("\n", "\r\n", `\e`, "\x1b", `\b`, "\b", `\\`, `\`).Replace(text)
		all = append(all, tr)
	}
	return all
}

// check compares a verdict with what the transcript's header says.
func (tr *transcript) check(t *testing.T, way string, v *ConsoleEvent, after time.Duration) {
	t.Helper()
	switch {
	case tr.stage == "" || tr.silent:
		if v != nil {
			t.Errorf("%s: %s: %s, want no verdict", way, v.Stage, v.Line)
		}
	case v == nil:
		t.Errorf("%s: no verdict, want %s", way, tr.stage)
	case v.Stage != tr.stage:
		t.Errorf("%s: %s: %s, want %s", way, v.Stage, v.Line, tr.stage)
	case after > time.Second && v.Stage != StageRefused && v.Stage != StageRestart && v.Stage != StageLoader:
		t.Errorf("%s: %s after the last byte", way, after)
	}
	if v != nil && way == "whole" && !strings.Contains(v.Line, tr.says) {
		t.Errorf("says %q, want %q", v.Line, tr.says)
	}
}

func (tr *transcript) options() watchOptions {
	o := watchOptions{Wanted: tr.wanted}
	if tr.ready != "" {
		o.Ready = regexp.MustCompile(tr.ready)
	}
	return o
}

func TestTranscripts(t *testing.T) {
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			for way, chunks := range ways(tr.text) {
				synctest.Test(t, func(t *testing.T) {
					v, after, w := watched(t, chunks, tr.options())
					tr.check(t, way, v, after)
					if tr.ready != "" && !w.state().Ready {
						t.Errorf("%s: readiness was not seen", way)
					}
				})
			}
		})
	}
}

// A whole boot says what the transcript's header says, and types nothing.
func TestTranscriptBoots(t *testing.T) {
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, c := newMachine(), newPipeConsole()
				m.up = false
				tg := &Target{Name: "x", Dial: m.dial, Console: c, Ready: tr.ready}
				tg.Boot = started(BootTraits{Cmdline: true}, func(k Kernel) {
					talk(c, tr.text, func() {
						if tr.stage == "" {
							m.set(func(m *machine) { m.up, m.id, m.cmdline = true, idNew, k.Args() })
						}
					})
				})
				var a attempt
				a.run(t.Context(), tg, Kernel{Name: "k", Release: tr.wanted})
				var be *BootError
				switch {
				case tr.wanted != "" && tr.stage == "": // the fake's release is another
				case tr.stage == "" && a.err != nil:
					t.Error(a.err)
				case tr.stage != "" && (!errors.As(a.err, &be) || be.Stage != tr.stage || !strings.Contains(a.err.Error(), tr.says)):
					t.Errorf("%v, want %s: %s", a.err, tr.stage, tr.says)
				}
				if a.took > 70*time.Second || !tr.silent && a.took > 25*time.Second {
					t.Errorf("took %s", a.took)
				}
				if c.typed.Len() > 0 {
					t.Errorf("typed %q", c.typed.String())
				}
				if a.console.String() != tr.text {
					t.Error("the record differs from what was sent")
				}
				tg.StopConsole()
			})
		})
	}
}
