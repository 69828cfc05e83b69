// Package story tells what happened to one target of a run, in order: what was
// asked of it, and what it said. It is made of the journal and the recorded
// console; neither the controller nor the target notices.
package story

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

// Kind of a line.
type Kind string

// Kinds of lines.
const (
	Lane    Kind = "lane"    // it began, ended, was given up
	Boot    Kind = "boot"    // a boot was asked for, or judged
	Phase   Kind = "phase"   // a boot came so far
	Trial   Kind = "trial"   // a trial began, ended, was judged
	Knob    Kind = "knob"    // of the target, set or restored
	Note    Kind = "note"    // of the controller: recovery, power, what went wrong
	Console Kind = "console" // the target said it
	Output  Kind = "output"  // of a trial that failed, or the console's last lines where none is recorded
	Left    Kind = "left"    // what is left out here, and where it stands
)

// Line is one thing that happened. Its text is inert.
type Line struct {
	At     time.Time `json:"at"`
	SinceS float64   `json:"since_s"` // the boot was asked for; 0 before the first
	Boot   int       `json:"boot,omitempty"`
	Kernel string    `json:"kernel,omitempty"`
	Kind   Kind      `json:"kind"`
	Text   string    `json:"text"`
	Bad    bool      `json:"bad,omitempty"` // it is, or explains, a failure
}

// Options choose a part of the story.
type Options struct {
	Boot    int    // only this boot; 0: all
	Kernel  string // only boots of this kernel; "" = all
	Failed  bool   // only boots and trials that failed
	Console bool   // the console whole, not only the ends of what it said
}

// Tell is the story of a lane. records are the run's, in their order. An error is of
// reading the console or an output; the lines are whole without.
func Tell(run *results.Run, records []results.Record, lane string, o Options) ([]Line, error) {
	t := &teller{run: run, lane: lane, o: o, model: results.Load(records)}
	t.begin()
	for i := range records {
		if rec := &records[i]; rec.Lane == lane {
			t.record(rec)
		}
	}
	t.endBoot()
	return t.lines, t.err
}

// teller tells records one after the other.
type teller struct {
	run   *results.Run
	lane  string
	o     Options
	model *results.Model
	lines []Line
	err   error

	boot    *results.BootState // nil before the first
	wanted  bool               // its lines are
	failed  bool               // it did not boot
	console []said             // of it, not told yet
	path    string             // of its recording
}

// begin is before the first boot: wanted where nothing is chosen.
func (t *teller) begin() { t.wanted = t.o.Boot == 0 && t.o.Kernel == "" }

// add tells a line.
func (t *teller) add(at time.Time, k Kind, bad bool, text string) {
	l := Line{At: at, Kind: k, Text: live.Safe(text), Bad: bad}
	if b := t.boot; b != nil {
		l.Boot, l.SinceS = b.Number, at.Sub(b.Asked).Seconds()
		if b.Result != nil {
			l.Kernel = b.Result.Kernel
		}
	}
	t.lines = append(t.lines, l)
}

// record tells one record, after what the console said before it.
func (t *teller) record(rec *results.Record) {
	fresh := rec.Boot != nil && (t.boot == nil || rec.Boot.Number != t.boot.Number)
	if fresh {
		t.endBoot()
		t.beginBoot(rec)
	}
	if !t.wanted {
		return
	}
	k, bad, text := words(rec)
	if text == "" || t.o.Failed && !bad && !t.failed {
		return
	}
	if !fresh { // the recording begins a moment before
		t.saidUntil(rec.At)
	}
	t.add(rec.At, k, bad, text)
	switch {
	case rec.Kind == results.KindBoot && len(t.path) == 0:
		for _, l := range rec.Boot.LastLines {
			t.add(rec.At, Output, bad, l)
		}
	case rec.Kind == results.KindJudged && bad && rec.Outcome != results.Skipped && rec.Outcome != results.BootFailed:
		t.outputs(rec)
	}
}

// beginBoot opens the recording of the boot that a record is of.
func (t *teller) beginBoot(rec *results.Record) {
	t.boot = t.model.Boot(t.lane, rec.Boot.Number)
	t.failed = t.boot.Result != nil && t.boot.Result.Outcome != results.OK
	kernel := rec.Boot.Kernel
	t.wanted = (t.o.Boot == 0 || t.o.Boot == rec.Boot.Number) && (t.o.Kernel == "" || t.o.Kernel == kernel) &&
		(!t.o.Failed || t.failed || t.trialFailed())
	t.console, t.path = nil, ""
	if !t.wanted || t.o.Failed && !t.failed {
		return
	}
	var err error
	if t.console, t.path, err = recorded(t.run.BootDir(t.lane, rec.Boot.Number)); err != nil && t.err == nil {
		t.err = fmt.Errorf("the console of boot %d: %w", rec.Boot.Number, err)
	}
}

// trialFailed says that something failed in the boot.
func (t *teller) trialFailed() bool {
	return slices.ContainsFunc(t.model.Trials, func(x *results.Trial) bool {
		return x.Slot.Target == t.lane && slices.ContainsFunc(x.Attempts, func(a *results.Attempt) bool {
			return a.Slot.Boot == t.boot.Number && a.Outcome != results.OK && a.Outcome != results.NotApplicable
		})
	})
}

// endBoot tells what the console said after the boot's last record.
func (t *teller) endBoot() {
	if t.wanted && len(t.console) > 0 {
		t.saidUntil(time.Time{})
	}
}

// Ends of what the console said in one stretch, in lines, of boots that went well
// and of those that are looked at.
const (
	fewFirst, fewLast       = 2, 4
	manyFirst, manyLast     = 6, 12
	causeBefore, causeAfter = 6, 8
)

// saidUntil tells what the console said before a time; zero: all that is left.
func (t *teller) saidUntil(at time.Time) {
	n := len(t.console)
	if !at.IsZero() {
		n, _ = slices.BinarySearchFunc(t.console, at, func(s said, at time.Time) int { return s.at.Compare(at) })
	}
	part := t.console[:n]
	t.console = t.console[n:]
	keep := t.keep(part)
	for i, left := 0, 0; i <= len(part); i++ {
		switch {
		case i < len(part) && !keep[i]:
			left++
			continue
		case left == 1: // a line about it is no shorter
			t.add(part[i-1].at, Console, false, part[i-1].text)
		case left > 1:
			t.add(part[i-left].at, Left, false, fmt.Sprintf("%d lines of the console are left out: %s, or --console", left, t.path))
		}
		left = 0
		if i < len(part) {
			t.add(part[i].at, Console, t.isCause(part[i].text), part[i].text)
		}
	}
}

// keep says which lines of a stretch are told: its ends, and what stands around the
// line that says why the boot failed.
func (t *teller) keep(part []said) []bool {
	first, last := fewFirst, fewLast
	if t.failed || t.o.Boot > 0 {
		first, last = manyFirst, manyLast
	}
	keep := make([]bool, len(part))
	for i := range part {
		keep[i] = keep[i] || t.o.Console || i < first || i >= len(part)-last
		if t.isCause(part[i].text) {
			for n := max(0, i-causeBefore); n <= min(len(part)-1, i+causeAfter); n++ {
				keep[n] = true
			}
		}
	}
	return keep
}

// isCause says that a line of the console is why the boot failed.
func (t *teller) isCause(text string) bool {
	if !t.failed || t.boot.Result == nil {
		return false
	}
	why := strings.TrimSpace(live.Safe(t.boot.Result.Reason))
	return len(why) >= 12 && strings.TrimSpace(text) == why
}

// outputs are the last lines that a failed trial wrote.
func (t *teller) outputs(rec *results.Record) {
	const most = 6
	dir := t.run.TrialDir(*rec.Slot, rec.Attempt)
	for _, name := range []string{"stdout", "stderr"} {
		path := filepath.Join(dir, name)
		lines, more, err := lastLines(path, most)
		if err != nil && t.err == nil {
			t.err = err
		}
		if more {
			t.add(rec.At, Left, false, fmt.Sprintf("the last lines of %s:", path))
		}
		for _, l := range lines {
			t.add(rec.At, Output, true, name+": "+l)
		}
	}
}
