package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
)

// Mixed is a block of a target whose counted trials are of several sessions:
// there the kernel and the day cannot be told apart.
type Mixed struct {
	Target   string `json:"target"`
	Block    int    `json:"block"`
	Sessions []int  `json:"sessions"` // from 1, as in Document.Sessions
	// ApartS is the time from the first to the last of these trials, in seconds.
	ApartS float64 `json:"apart_s"`
}

// Repeated is a slot that took more than one attempt.
type Repeated struct {
	results.Slot
	Attempts int   `json:"attempts"`
	Counts   int   `json:"counts"`            // the attempt whose values count; 0: none does
	Session  int   `json:"session,omitempty"` // of that attempt
	Old      []Old `json:"superseded,omitempty"`
	// FirstFailure is the cause of the first attempt that was not ok.
	FirstFailure string `json:"first_failure,omitempty"`
}

// Old is a valid attempt that a newer one replaces, by its primary metric.
type Old struct {
	Attempt int      `json:"attempt"`
	Session int      `json:"session"`
	Metric  string   `json:"metric"`
	Unit    string   `json:"unit"`
	Value   *float64 `json:"value,omitempty"`
	Missing string   `json:"missing,omitempty"` // why one of the values is not there
	Now     *float64 `json:"now,omitempty"`     // of the attempt that counts
}

// Later is why trials of a target were skipped that a later session executed.
type Later struct {
	Target string `json:"target"`
	Cause  string `json:"cause"` // as in the reason of the skipped attempts
	Trials int    `json:"trials"`
}

// skippedFirst counts a trial that was skipped before it was executed.
func (d *Document) skippedFirst(t *results.Trial) {
	if t.Attempts[0].Outcome != results.Skipped || t.Final().Outcome == results.Skipped {
		return
	}
	l := Later{Target: t.Slot.Target, Cause: t.Attempts[0].Reason, Trials: 1}
	for i, x := range d.Later {
		if x.Target == l.Target && x.Cause == l.Cause {
			d.Later[i].Trials++
			return
		}
	}
	d.Later = append(d.Later, l)
}

// sessions fills in what several sessions and attempts mean for the figures.
func (b *builder) sessions(d *Document) {
	counted := map[[2]any][]*results.Attempt{}
	var order [][2]any
	for _, t := range b.m.Trials {
		v := t.Valid()
		if v != nil && !t.Slot.Warmup() {
			k := [2]any{t.Slot.Target, t.Slot.Block}
			if counted[k] == nil {
				order = append(order, k)
			}
			counted[k] = append(counted[k], v)
		}
		if len(t.Attempts) > 1 && !t.Slot.Warmup() {
			d.skippedFirst(t)
		}
		if r := repeated(t); r.Attempts > 1 && !t.Slot.Warmup() {
			d.Repeated = append(d.Repeated, r)
		}
	}
	for _, k := range order {
		if m := mixed(counted[k]); len(m.Sessions) > 1 {
			m.Target, m.Block = k[0].(string), k[1].(int)
			d.Mixed = append(d.Mixed, m)
		}
	}
}

func mixed(trials []*results.Attempt) Mixed {
	var m Mixed
	var first, last time.Time
	for _, a := range trials {
		if !slices.Contains(m.Sessions, a.Session) {
			m.Sessions = append(m.Sessions, a.Session)
		}
		if first.IsZero() || a.Started.Before(first) {
			first = a.Started
		}
		if a.Started.After(last) {
			last = a.Started
		}
	}
	slices.Sort(m.Sessions)
	m.ApartS = last.Sub(first).Seconds()
	return m
}

// repeated counts what was really executed: a slot that is skipped again and
// again was tried never.
func repeated(t *results.Trial) Repeated {
	r := Repeated{Slot: t.Slot, FirstFailure: t.FirstFailure}
	for _, a := range t.Attempts {
		if a.Outcome != results.Skipped {
			r.Attempts++
		}
	}
	v := t.Valid()
	if v == nil {
		return r
	}
	r.Counts, r.Session, r.Boot = v.Number, v.Session, v.Slot.Boot
	for _, a := range t.Superseded() {
		r.Old = append(r.Old, old(a, v))
	}
	return r
}

func old(a, now *results.Attempt) Old {
	o := Old{Attempt: a.Number, Session: a.Session, Missing: "the trial gave no value"}
	for _, x := range values(a) {
		if x.Primary {
			o.Metric, o.Unit, o.Missing = x.Name, x.Unit, x.Missing
			if x.Missing == "" {
				o.Value = &x.Value
			}
			switch n, why := now.Value(x.Name); {
			case why == "":
				o.Now = &n.Value
			case o.Missing == "":
				o.Missing = "the newer attempt has none: " + why
			}
			break
		}
	}
	return o
}

// mixedLong is from when on a block in two parts is loudly told: a lab's
// temperature and load change within hours.
const mixedLong = time.Hour

// mostRepeated is how many slots with several attempts are listed; the others
// are in json.
const mostRepeated = 40

// sessionList tells the sessions of a run apart, where there are several, or
// several attempts.
func sessionList(src *source, width int) section {
	d := src.doc
	s := section{title: "Sessions and attempts"}
	for _, m := range d.Mixed {
		text := fmt.Sprintf("block %d on %s holds trials of sessions %s, %s apart", m.Block, m.Target, numbers(m.Sessions), apart(m.ApartS))
		if m.ApartS >= 0 && m.ApartS < mixedLong.Seconds() {
			s.say(width, "  ", "%s: a resumed block", text)
			continue
		}
		s.say(width, "  ", "MIXED: %s: there the kernels were measured at different times, and a change of the device in between cannot be told from one of the kernel. `%s --target %s` repeats its blocks whole.",
			text, d.call("kernsweep rerun "+paste.Word(d.Run.Name)), paste.Word(m.Target))
	}
	for _, t := range d.Targets {
		if t.Cut != nil {
			s.say(width, "  ", "LEFT OUT on %s, since it would not have ended before %s: blocks from %d on, %s. `%s` measures them.",
				t.Name, t.Cut.Until.Local().Format("2006-01-02 15:04 MST"), t.Cut.Block, several(t.Cut.Trials, "trial"), d.call("kernsweep resume "+paste.Word(d.Run.Name)))
		}
	}
	for _, t := range d.Targets {
		if e := t.Enough; e != nil {
			s.say(width, "  ", "ENOUGH on %s after %d blocks (boots = \"auto\"): the widest primary 95 %% interval was ±%.3g %% then (%s), ±%.3g %% was asked for; nothing but widths decided.",
				t.Name, e.Blocks, 100*e.HalfWidth, e.Widest, 100*e.Wanted)
		}
	}
	for _, x := range d.Later {
		s.say(width, "  ", "%s: %s skipped at first, and measured by a later session: %s", x.Target, plural.Of(x.Trials, "trial"), x.Cause)
	}
	if len(d.Repeated) == 0 {
		return s
	}
	s.blank()
	s.say(width, "", "%s with more than one attempt; the newest valid one counts, the others are on file.", plural.Of(len(d.Repeated), "slot"))
	tab := table{labels: 2, left: []int{1, 4, 5}, head: []string{"cell", "block, repeat", "attempts", "counts", "superseded", "first failure"}}
	var notes footnotes
	for _, r := range d.Repeated[:min(len(d.Repeated), mostRepeated)] {
		counts := "none"
		if r.Counts > 0 {
			counts = fmt.Sprintf("%d (session %d)", r.Counts, r.Session)
		}
		first := ""
		if r.FirstFailure != "" {
			first = notes.mark(r.FirstFailure)
		}
		tab.row(r.Cell.String(), fmt.Sprintf("%d, %d", r.Block, r.Repeat), fmt.Sprint(r.Attempts), counts, superseded(r.Old), first)
	}
	s.table(&tab, &notes, width)
	if n := len(d.Repeated) - mostRepeated; n > 0 {
		s.say(width, "", "and %d more: --format json", n)
	}
	return s
}

func superseded(list []Old) string {
	var parts []string
	for _, o := range list {
		if o.Missing != "" {
			parts = append(parts, fmt.Sprintf("attempt %d: n/a (%s)", o.Attempt, o.Missing))
			continue
		}
		parts = append(parts, fmt.Sprintf("attempt %d: %s, now %s %s", o.Attempt, fig(*o.Value), fig(*o.Now), o.Unit))
	}
	return strings.Join(parts, "; ")
}

func numbers(list []int) string {
	var s []string
	for _, n := range list {
		s = append(s, fmt.Sprint(n))
	}
	return strings.Join(s, ", ")
}

// apart is a length of time in words; one that went backwards says nothing.
func apart(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 0:
		return "an unknown time (the clock jumped)"
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	case d >= time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
	return d.Round(time.Second).String()
}
