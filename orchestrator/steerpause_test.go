package orchestrator

import (
	"strings"
	"sync"
	"testing"
	"time"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// Nothing begins in a lane that is paused, in the middle of a boot or between two.
func TestPausedLane(t *testing.T) {
	s := &steering{t: t, fakeLab: newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})}
	s.lab.Sweeps[0].Repeat = 2
	began := make(chan struct{}, 100) // trials and boots
	s.m.fail = func(n int, _ string) error {
		if n == 2 { // the boot that is under way is not cut off
			s.ask(nil, control.Request{Action: control.Pause, Why: "lunch"}, control.Request{Action: control.Pause}, control.Request{Action: control.SkipTrial})
			s.wg.Wait()
			for len(began) > 0 {
				<-began
			}
		}
		return nil
	}
	goOn := func() {
		s.wg.Go(func() {
			select {
			case <-began:
				t.Error("something began in a paused lane")
			case <-time.After(500 * time.Millisecond): // nothing tells that nothing happens
			}
			s.ask(nil, control.Request{Action: control.GoOn}, control.Request{Action: control.GoOn})
		})
	}
	third := false
	run, m, err := s.execute(t, t.Context(), func(r results.Record) {
		switch {
		case r.Kind == results.KindStarted, r.Kind == results.KindPhase && r.Phase == targets.PhaseAsked && r.Boot.Number != 2:
			began <- struct{}{}
		case r.Kind == results.KindBoot && r.Boot.Number == 2:
			goOn()
		case r.Kind == results.KindBoot && r.Boot.Number == 3: // between two boots, this time
			third = true
			s.ask(nil, control.Request{Action: control.SkipKernel}, control.Request{Action: control.Pause})
		case r.Kind == results.KindLane && r.Note == results.NotePaused && third:
			for len(began) > 0 {
				<-began
			}
			goOn()
		}
	})
	s.wg.Wait()
	text := kinds(t, run)
	if c := count(m); err != nil || c[results.OK]+c[results.Skipped] != 8 || c[results.OK] < 3 {
		t.Errorf("%v; outcomes %v\n%s", err, c, text)
	}
	if !strings.Contains(text, "block 1 was split by a pause of") || strings.Count(text, "lane  paused") != 2 || strings.Count(text, "lane  goes on") != 2 || strings.Contains(text, "infra") {
		t.Errorf("journal:\n%s", text)
	}
	if !strings.Contains(strings.Join(s.said, "\n"), "paused already") || m.Lane("box").Paused != (time.Time{}) {
		t.Errorf("said %q", s.said)
	}
}

// A pause that outlasts --until cuts what is left, and says so.
func TestPauseBeyondTheEnd(t *testing.T) {
	f, clock := nightLab(t, 4*time.Hour)
	s := &steering{t: t, fakeLab: f}
	var once sync.Once
	run, m, err := s.execute(t, t.Context(), func(r results.Record) {
		if r.Kind == results.KindJudged {
			once.Do(func() { s.ask(nil, control.Request{Action: control.Pause}) })
		}
		if r.Kind == results.KindLane && r.Note == results.NotePaused {
			s.wg.Go(func() {
				clock.pass(10 * time.Hour)
				h := s.runner.lanes[0].helm
				h.mu.Lock()
				defer h.mu.Unlock()
				h.changed() // it looks at the clock each minute by itself
			})
		}
	})
	s.wg.Wait()
	text := kinds(t, run)
	if err != nil || m.Lane("box").Cut == nil || !strings.Contains(text, "it is paused, and what is left would not be over in time") || count(m)[results.OK] > 2 {
		t.Errorf("%v:\n%s", err, text)
	}
}
