package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// forecast of a lab whose boots take 10 minutes and whose trials take 5.
func forecast(t *testing.T, p *Plan, h History, d time.Duration) Forecast {
	t.Helper()
	from := time.Date(2026, 11, 30, 20, 48, 0, 0, time.UTC)
	return ForecastUntil(lab(len(p.Lanes), 2, 1), p, h, Deadline{At: from.Add(d)}, from)
}

func hours(n int) History {
	h := History{Boot: map[string]time.Duration{}, Trial: map[results.Cell]time.Duration{}}
	for t := range n {
		h.Boot[fmt.Sprintf("t%d", t)] = 10 * time.Minute * time.Duration(t+1)
		for k := range 2 {
			h.Trial[results.Cell{Target: fmt.Sprintf("t%d", t), Kernel: fmt.Sprintf("k%d", k), Workload: "still.w0", Scenario: "default"}] = 5 * time.Minute
		}
	}
	return h
}

// A block of two kernels, one warm-up and two repeats takes 2*(10+3*5) = 50
// minutes on t0, 70 on t1; the way home is not far, no known-good kernel is named.
func TestForecast(t *testing.T) {
	one, two := expand(t, lab(1, 2, 1), 3, Filter{}), expand(t, lab(2, 2, 1), 3, Filter{})
	for _, c := range []struct {
		p     *Plan
		until time.Duration
		want  string
	}{
		{one, 4 * time.Hour, "until 00:48 UTC (4h00m from now): all 4 blocks fit on t0\n"},
		{one, 200*time.Minute + perTrial, "until 00:08 UTC (3h20m from now): all 4 blocks fit on t0\n"},
		{one, 200 * time.Minute, "until 00:08 UTC (3h20m from now): 3 of 4 blocks fit on t0; left out: block 4, 4 trials\n"},
		{one, 2 * time.Hour, "until 22:48 UTC (2h00m from now): 2 of 4 blocks fit on t0; left out: blocks 3-4, 8 trials\n"},
		{two, 50*time.Minute + perTrial, "until 21:38 UTC (50m from now):\n" +
			"  1 of 4 blocks fit on t0; left out: blocks 2-4, 12 trials\n" +
			"  no block fits on t1, the first takes about 1h10m (21:59 UTC would do); left out: blocks 1-4, 16 trials\n"},
	} {
		f := forecast(t, c.p, hours(2), c.until)
		var b bytes.Buffer
		if err := f.WriteText(&b); err != nil || b.String() != c.want {
			t.Errorf("%s: %v, got\n%swant\n%s", c.until, err, b.String(), c.want)
		}
		if err := f.Nothing(); err != nil {
			t.Errorf("%s: %v", c.until, err)
		}
	}
	err := forecast(t, two, hours(2), 40*time.Minute).Nothing()
	want := "until 21:28 UTC (40m from now) there is no time for one whole block: it takes about 50m on t0, 1h10m on t1, the way home included; 21:39 UTC is the earliest that would do"
	if err == nil || err.Error() != want {
		t.Errorf("refused with %v\nwant %s", err, want)
	}
	if d := 51 * time.Minute; forecast(t, two, hours(2), d).Nothing() != nil {
		t.Error("what the refusal names does not do")
	}
	raw, err := json.Marshal(forecast(t, one, hours(1), 2*time.Hour))
	if err != nil || !strings.Contains(string(raw), `"left_out":[3,4],"trials_left_out":8`) {
		t.Errorf("%s, %v", raw, err)
	}
}

// A lane without boots is there to be brought home.
func TestForecastOfALaneWithoutBoots(t *testing.T) {
	p := &Plan{Lanes: []Lane{{Target: "t0"}}}
	f := forecast(t, p, History{}, time.Minute)
	var b bytes.Buffer
	if err := f.WriteText(&b); err != nil || !strings.Contains(b.String(), "nothing to measure on t0") || f.Nothing() != nil {
		t.Error(b.String(), err, f.Nothing())
	}
}

// The way home counts, but not from the known-good kernel itself.
func TestForecastCountsTheWayHome(t *testing.T) {
	l := lab(1, 2, 1)
	l.Targets[0].KnownGood, l.Targets[0].Settle = "k1", time.Minute
	c := NewCosts(l, expand(t, l, 3, Filter{}), "t0", hours(1))
	if d := c.Home("k0"); d != 10*time.Minute {
		t.Errorf("home from k0: %s, want 10m: the boot of k1, without settling", d)
	}
	if d := c.Home("k1"); d != perTrial {
		t.Errorf("home from k1: %s", d)
	}
	if d := c.Start("k0"); d != 11*time.Minute {
		t.Errorf("a boot: %s, want 11m: it settles", d)
	}
}

// What this run has seen replaces what was thought before.
func TestCostsLearn(t *testing.T) {
	l := lab(1, 2, 1)
	c := NewCosts(l, expand(t, l, 3, Filter{}), "t0", hours(1))
	cell := func(k string) results.Cell {
		return results.Cell{Target: "t0", Kernel: k, Workload: "still.w0", Scenario: "default"}
	}
	c.SawBoot("k0", 20*time.Minute)
	c.SawTrial(cell("k0"), time.Minute)
	for what, d := range map[string][2]time.Duration{
		"boot of k0": {c.Start("k0"), 20 * time.Minute}, "boot of k1, never seen": {c.Start("k1"), 20 * time.Minute},
		"trial of k0": {c.Trial(cell("k0")), time.Minute}, "trial of k1, never seen": {c.Trial(cell("k1")), time.Minute},
	} {
		if d[0] != d[1] {
			t.Errorf("%s: %s, want %s", what, d[0], d[1])
		}
	}
	c.SawBoot("k1", 3*time.Minute)
	if d := c.Start("k1"); d != 3*time.Minute {
		t.Errorf("boot of k1: %s", d)
	}
	c.SawFailure("k1", time.Hour) // says nothing of other kernels
	if a, b := c.Start("k1"), c.Start("new"); a != time.Hour || b != 20*time.Minute {
		t.Errorf("after a hang of k1: %s, and for another kernel %s", a, b)
	}
	for range newest { // the slow one is forgotten
		c.SawBoot("k0", 2*time.Minute)
	}
	if d := c.Start("k0"); d != 2*time.Minute {
		t.Errorf("boot of k0: %s", d)
	}
}

// Of a target that cannot be booted only the first boot runs.
func TestForecastOfABootByHand(t *testing.T) {
	l := lab(1, 2, 1)
	l.Targets[0].Boot = byHand{}
	p := expand(t, l, 3, Filter{})
	from := time.Date(2026, 11, 30, 20, 48, 0, 0, time.UTC)
	f := ForecastUntil(l, p, hours(1), Deadline{At: from.Add(2 * time.Hour)}, from)
	if s := f.Lanes[0]; s.Blocks != 1 || s.Fit != 1 {
		t.Errorf("%+v, want one block", s)
	}
}

type byHand struct{ imageBoot }

func (byHand) Traits() targets.BootTraits { return targets.BootTraits{OnlyOnce: true} }

// Lanes that share something wait for each other.
func TestCostsOfWhatIsShared(t *testing.T) {
	l := lab(3, 1, 1)
	l.Targets[0].Uses, l.Targets[1].Uses = []string{"lan0"}, []string{"lan0"}
	p := expand(t, l, 3, Filter{})
	cell := results.Cell{Target: "t0", Kernel: "k0", Workload: "still.w0", Scenario: "default"}
	if d, want := NewCosts(l, p, "t0", History{}).Trial(cell), 2*(time.Second+perTrial); d != want {
		t.Errorf("a trial on t0: %s, want %s: t1 may be at it", d, want)
	}
	cell.Target = "t2"
	if d, want := NewCosts(l, p, "t2", History{}).Trial(cell), time.Second+perTrial; d != want {
		t.Errorf("a trial on t2: %s, want %s", d, want)
	}
	l.Workloads[0].Scenarios[0].Run = still{d: time.Second, needs: workloads.Needs{Peer: true}}
	l.Workloads[0].Scenarios[0].Common.Peer = "controller"
	if d, want := NewCosts(l, p, "t2", History{}).Trial(cell), 3*(time.Second+perTrial); d != want {
		t.Errorf("a trial with the controller: %s, want %s: all lanes use it", d, want)
	}
}

func TestRanges(t *testing.T) {
	for want, list := range map[string][]int{"block 3": {3}, "blocks 7-8": {7, 8}, "blocks 1, 3-5, 9": {1, 3, 4, 5, 9}} {
		if got := ranges(list); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
	}
}

func TestForecastOfManyDays(t *testing.T) {
	p := expand(t, lab(1, 2, 1), 3, Filter{})
	var b bytes.Buffer
	err := forecast(t, p, hours(1), 50*time.Hour).WriteText(&b)
	if want := "until Wed 2026-12-02 22:48 UTC (2 days from now): all 4 blocks fit on t0\n"; err != nil || b.String() != want {
		t.Errorf("%q, %v, want %q", b.String(), err, want)
	}
}
