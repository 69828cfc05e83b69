package targets

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// How fast a console's lines are judged: a dump of megabytes must not delay the
// verdict that stands at its end.
func BenchmarkConsoleLines(b *testing.B) {
	var lines []string
	n := 0
	for _, tr := range transcripts(b) {
		if tr.stage == "" {
			for _, l := range strings.Split(tr.text, "\r\n") {
				lines = append(lines, l)
				n += len(l)
			}
		}
	}
	b.SetBytes(int64(n))
	for b.Loop() {
		var h bootHistory
		for _, l := range lines {
			h.read(l)
		}
	}
}

// From the last console byte of a panic to the verdict, under real time: with the
// kernel's closing line and without it.
func BenchmarkPanicVerdict(b *testing.B) {
	for name, text := range map[string]string{
		"with end":    boot1 + "[    2.100000] Kernel panic - not syncing: Fatal exception\r\n[    2.200000] ---[ end Kernel panic - not syncing: Fatal exception ]---\r\n",
		"without end": boot1 + "Kernel panic - not syncing: Fatal exception\r\n <0>Rebooting in 5 seconds..",
	} {
		b.Run(name, func(b *testing.B) {
			var sum, worst time.Duration
			for b.Loop() {
				m, c := newMachine(), newPipeConsole()
				m.up = false
				var last time.Time
				tg := &Target{Name: "x", Dial: m.dial, Console: c, Ready: "login"}
				tg.Boot = &bootFunc{traits: BootTraits{Cmdline: true}, f: func(context.Context, *Target, Kernel) error {
					_, err := io.WriteString(c.w, text)
					last = time.Now()
					return err
				}}
				_, _, err := Boot(b.Context(), tg, Kernel{Name: "k"}, BootLog{})
				took := time.Since(last)
				var be *BootError
				if !errors.As(err, &be) || be.Stage != StagePanic {
					b.Fatal(err)
				}
				tg.StopConsole()
				sum, worst = sum+took, max(worst, took)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(sum.Milliseconds())/float64(b.N), "ms/verdict")
			b.ReportMetric(float64(worst.Milliseconds()), "ms/worst")
		})
	}
}
