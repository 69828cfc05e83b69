package targets

import (
	"errors"
	"fmt"
	"math/rand/v2"
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

// noises are what a line does to a transcript. Each keeps the words that decide
// readable to a person.
var noises = map[string]func(r *rand.Rand, s string) string{
	"LF only":  func(_ *rand.Rand, s string) string { return strings.ReplaceAll(s, "\r\n", "\n") },
	"CR CR LF": func(_ *rand.Rand, s string) string { return strings.ReplaceAll(s, "\r\n", "\r\r\n") },
	"LF CR":    func(_ *rand.Rand, s string) string { return strings.ReplaceAll(s, "\r\n", "\n\r") },
	"mixed ends": func(r *rand.Rand, s string) string {
		return eachLine(s, func(l string) string { return l + []string{"\n", "\r\n", "\r"}[r.IntN(3)] })
	},
	"NULs":    sprinkle(0.1, "\x00"),
	"8 bit":   sprinkle(0.02, "\xff", "\x80\xfe", "\xc3"),
	"colours": sprinkle(0.03, "\x1b[0m", "\x1b[1;31m", "\x1b[K", "\x1b[6n", "\x1b[?25h"),
	"garbage first": func(r *rand.Rand, s string) string {
		b := make([]byte, 300)
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		return string(b) + "\r\n" + s
	},
	"lost":    perLetter(0.004, func(string) string { return "" }),
	"doubled": perLetter(0.004, func(c string) string { return c + c }),
	"kernel lines between": func(r *rand.Rand, s string) string {
		return eachLine(s, func(l string) string {
			if r.IntN(3) == 0 && timedLine.MatchString(l) {
				return l + "\r\n" + printkPrefix.FindString(l) + "usb 1-1: new high-speed USB device number 2 using xhci_hcd\r\n"
			}
			return l + "\r\n"
		})
	},
	"program between": func(r *rand.Rand, s string) string {
		return eachLine(s, func(l string) string {
			if r.IntN(3) == 0 && timedLine.MatchString(l) {
				return l + "\r\nnet: eth0 is up" + []string{"", "\r\n"}[r.IntN(2)]
			}
			return l + "\r\n"
		})
	},
}

var timedLine = regexp.MustCompile(`^\[ *[\d.]{8,}\]`)

// eachLine replaces every line with its end; what has no end stays.
func eachLine(s string, f func(string) string) string {
	lines := strings.Split(s, "\r\n")
	out := ""
	for _, l := range lines[:len(lines)-1] {
		out += f(l)
	}
	return out + lines[len(lines)-1]
}

func sprinkle(rate float64, what ...string) func(*rand.Rand, string) string {
	return func(r *rand.Rand, s string) string {
		out := strings.Builder{}
		for _, c := range []byte(s) {
			if r.Float64() < rate && c > ' ' {
				out.WriteString(what[r.IntN(len(what))])
			}
			out.WriteByte(c)
		}
		return out.String()
	}
}

// perLetter changes letters outside the last line, which may be a prompt.
func perLetter(rate float64, f func(string) string) func(*rand.Rand, string) string {
	return func(r *rand.Rand, s string) string {
		end := strings.LastIndex(s, "\r\n")
		out := strings.Builder{}
		for i, c := range []byte(s) {
			if i < end && c > ' ' && r.Float64() < rate {
				out.WriteString(f(string(c)))
			} else {
				out.WriteByte(c)
			}
		}
		return out.String()
	}
}

// Noise changes no verdict, unless it hits the very line that decides.
func TestNoisyTranscripts(t *testing.T) {
	const seeds = 4
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			for way, noise := range noises {
				for seed := range uint64(seeds) {
					s := noise(rand.New(rand.NewPCG(seed, 7)), tr.text)
					if (way == "lost" || way == "doubled") && tr.stage != "" && !sameLines(tr.text, s, tr.says) {
						continue // noise in decisive words has a test of its own
					}
					synctest.Test(t, func(t *testing.T) {
						v, after, _ := watched(t, []string{s}, tr.options())
						tr.check(t, fmt.Sprintf("%s, seed %d", way, seed), v, after)
						if t.Failed() && testing.Verbose() {
							t.Logf("%q", s)
						}
					})
				}
			}
		})
	}
}

// sameLines says that the lines with words are the same in both texts.
func sameLines(a, b, words string) bool {
	with := func(text string) (out string) {
		for _, l := range strings.Split(text, "\r\n") {
			if strings.Contains(l, words) {
				out += l + "\n"
			}
		}
		return out
	}
	return with(a) == with(b)
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

// Noise may hit decisive words themselves: any letter lost or doubled, and the
// line broken anywhere.
func TestNoiseInDecisiveWords(t *testing.T) {
	for _, b := range blurred {
		words := b.words.words
		for i := range len(words) {
			for how, hit := range map[string]string{
				"lost":    words[:i] + words[i+1:],
				"doubled": words[:i] + words[i:i+1] + words[i:],
				"broken":  words[:i] + "\r" + words[i:],
			} {
				var h bootHistory
				stage := ""
				for _, line := range strings.Split("[    1.000000] x\r~~ "+hit+" 1", "\r") {
					if f := h.read(line); f.stage != "" {
						stage = f.stage
					}
				}
				if stage != b.stage {
					t.Errorf("%q (%s): %q, want %s", hit, how, stage, b.stage)
				}
			}
		}
	}
}

// Two writers whose letters stand between each other's: a panic is suspected, or
// at the least the boot is none.
func TestWritersInterleavedByLetter(t *testing.T) {
	const crash = "[    3.200117] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000200\r\n"
	const other = "[ks-agent: cannot open /dev/virtio-ports/ks0: no such device or address, giving up now\r\n"
	missed := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		merged, a, b := "", crash, other
		for len(a) > 0 && len(b) > 0 {
			from := &a
			if r.IntN(2) == 0 {
				from = &b
			}
			n := min(1+r.IntN(2), len(*from))
			merged, *from = merged+(*from)[:n], (*from)[n:]
		}
		synctest.Test(t, func(t *testing.T) {
			v, _, _ := watched(t, []string{boot1, merged + a + b}, watchOptions{Ready: regexp.MustCompile(`login: $`)})
			if v == nil {
				missed++
			} else if v.Stage != StagePanic {
				t.Errorf("%+v", *v)
			}
		})
	}
	if missed > 10 { // the silence that follows decides those
		t.Errorf("%d of 200 were not suspected", missed)
	}
}
