package targets

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
)

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
