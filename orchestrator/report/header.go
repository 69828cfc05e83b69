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

const clock = "2006-01-02 15:04:05 UTC"

func at(t time.Time) string { return t.UTC().Format(clock) }

// header says what was run, when, where, and how far each boot is proven.
func header(src *source, width int) section {
	d := src.doc
	s := section{title: "kernsweep: sweep " + d.Run.Sweep}
	s.say(width, "          ", "run       %s", d.Run.Name)
	s.say(width, "          ", "made      %s by %s on %s, kernsweep %s, seed %d", at(d.Run.Created), d.Run.Who, d.Run.Host, d.Run.Version, d.Run.Seed)
	if d.Run.Imported != nil {
		imported(&s, d.Run.Imported, width)
	}
	for i, x := range d.Sessions {
		if n := len(d.Sessions) - mostSessions; n > 0 && i > 0 && i <= n {
			if i == 1 {
				s.add("          " + plural.Of(n, "more session"))
			}
			continue
		}
		s.say(width, "          ", "session %d %s%s%s", i+1, at(x.Began), sessionEnd(x, i+1 == len(d.Sessions), d.Running != ""), why(x))
	}
	if d.Running != "" {
		s.say(width, "          ", "state     RUNNING (%s): what stands below as interrupted or missing may still come", d.Running)
	} else if n := len(d.Sessions); n > 0 && d.Sessions[n-1].Ended.IsZero() {
		s.say(width, "          ", "state     the controller died")
	} else {
		s.say(width, "          ", "state     %s (exit status %d)", stateText(d), d.ExitStatus)
	}
	if again := goesOn(d); again != "" {
		s.add(command("go on     "+clean(again), width, "          ")...)
	}
	for _, n := range d.Damage {
		s.say(width, "          ", "JOURNAL   %s", n)
	}
	if d.Doubtful > 0 {
		s.say(width, "          ", "JOURNAL   on file and NOT counted: %s after missing ones", plural.Of(d.Doubtful, "record"))
	}
	for i := range d.Targets {
		t := &d.Targets[i]
		for _, text := range t.alarms() {
			s.say(width, "          ", "target    %s: %s", t.Name, text)
		}
	}
	return s
}

// imported says where the numbers of an imported run come from.
func imported(s *section, m *results.Import, width int) {
	var files []string
	for i, f := range m.Files {
		if i == mostFiles {
			files = append(files, fmt.Sprintf("and %d more", len(m.Files)-i))
			break
		}
		files = append(files, f.Name+" ("+f.Format+")")
	}
	s.say(width, "          ", "IMPORTED  from logs that others wrote: %s", strings.Join(files, ", "))
	if m.Note != "" {
		s.say(width, "          ", "          %s", m.Note)
	}
	s.say(width, "          ", "          No boot of it was seen and no kernel was proven: what ran is what the logs say.")
}

const (
	mostFiles    = 8 // of an import, in the header
	mostSessions = 6 // in the header
)

// alarms are what no figure of the target may be read without.
func (t *Target) alarms() []string {
	var list []string
	if strings.HasPrefix(t.Quarantined, results.SkippedBy) {
		list = append(list, "GIVEN UP BY HAND: "+t.Quarantined)
	} else if t.Quarantined != "" {
		list = append(list, "QUARANTINED: "+t.Quarantined)
	}
	if t.Taken != "" {
		list = append(list, "TAKEN: "+t.Taken)
	}
	if t.HostBound {
		list = append(list, "NOT COMPARABLE: figures depend on the controller's load")
	}
	return list
}

// targetList lists what was booted, and how far it is proven.
func targetList(src *source, width int) section {
	s := section{title: "Targets and kernels"}
	for i := range src.doc.Targets {
		s.blank()
		target(&s, &src.doc.Targets[i], src.doc.Run.Imported != nil, width)
	}
	if len(s.lines) == 0 {
		s.add("nothing recorded")
	}
	return s
}

func sessionEnd(x results.Session, last, runs bool) string {
	switch {
	case x.Ended.IsZero() && last && runs:
		return ", running"
	case x.Ended.IsZero():
		return ", its controller died"
	case x.Interrupted:
		return " to " + at(x.Ended) + " (interrupted)"
	}
	return " to " + at(x.Ended)
}

// goesOn is the command for a run that did not come to its end.
func goesOn(d *Document) string {
	n := len(d.Sessions)
	if n == 0 || d.Running != "" || !d.Sessions[n-1].Interrupted && !d.Sessions[n-1].Ended.IsZero() {
		return ""
	}
	return d.call("kernsweep resume " + paste.Word(d.Run.Name))
}

// why is what a later session was for.
func why(x results.Session) string {
	if x.Why == "" {
		return ""
	}
	return ": " + x.Why
}

func stateText(d *Document) string {
	ok, notRun := 0, 0
	for _, t := range d.Targets {
		ok += t.Outcomes[results.OK]
		notRun += t.NotRun
	}
	switch d.ExitStatus {
	case results.ExitOK:
		if ok == 0 {
			return "nothing measured"
		}
		if notRun > 0 {
			return "no failure; " + plural.Of(notRun, "planned trial") + " not run"
		}
		if slices.ContainsFunc(d.Failures, func(f Failure) bool { return f.Outcome == results.Skipped }) {
			return "no failure; trials were skipped by hand"
		}
		return "all trials ok"
	case results.ExitFailed:
		return "a kernel or a workload failed"
	case results.ExitInfrastructure:
		return "a target was lost"
	case results.ExitInterrupted:
		return "interrupted"
	}
	return "unknown"
}

func target(s *section, t *Target, imported bool, width int) {
	about := []string{}
	for _, x := range []struct{ name, value string }{{"", t.Arch}, {"boot ", t.Boot}} {
		if x.value != "" {
			about = append(about, x.name+x.value)
		}
	}
	if t.Emulated {
		about = append(about, "emulated")
	}
	if t.Boots > 0 {
		about = append(about, fmt.Sprintf("%d boots planned", t.Boots))
	}
	line := "target " + t.Name
	if len(about) > 0 {
		line += " (" + strings.Join(about, ", ") + ")"
	}
	s.say(width, "  ", "%s", line)
	if t.Clock == "guest" {
		s.say(width, "    ", "  clock: only the target's own clock counts; its seconds are not the controller's")
	}
	if len(t.Kernels) == 0 {
		return
	}
	var notes footnotes
	tab := table{labels: 1, head: []string{"  kernel", "release", "scheduler", "boots", "proof"}, left: []int{1, 2, 3, 4}}
	for i := range t.Kernels {
		k := &t.Kernels[i]
		tab.row("  "+k.Name, release(k, imported), scheduler(k, imported), bootCounts(k, imported), proof(k, imported, &notes))
	}
	s.table(&tab, &notes, width)
}

func release(k *Kernel, imported bool) string {
	if len(k.Releases) == 0 {
		return "n/a (" + unknown(k, imported) + ")"
	}
	return strings.Join(k.Releases, ", ")
}

func scheduler(k *Kernel, imported bool) string {
	switch {
	case len(k.Schedulers) > 0:
		return strings.Join(k.Schedulers, ", ")
	case k.Want != "":
		return "n/a (" + unknown(k, imported) + "; wanted " + k.Want + ")"
	}
	return "n/a (" + unknown(k, imported) + ")"
}

// unknown is why nothing is known of a kernel that ran.
func unknown(k *Kernel, imported bool) string {
	switch {
	case imported && k.Boots[results.BootFailed] == 0:
		return "not told"
	case k.Boots[results.OK] == 0:
		return "no boot"
	}
	return "not found"
}

func bootCounts(k *Kernel, imported bool) string {
	if imported && len(k.Boots) == 0 {
		return "not known"
	}
	s := fmt.Sprintf("%d ok", k.Boots[results.OK])
	for _, o := range []results.Outcome{results.BootFailed, results.Lost, results.Skipped, results.Interrupted} {
		if n := k.Boots[o]; n > 0 {
			s += fmt.Sprintf(", %d %s", n, o)
		}
	}
	if k.Replaced > 0 {
		s += fmt.Sprintf(" (+%d replaced)", k.Replaced)
	}
	return s
}

func proof(k *Kernel, imported bool, notes *footnotes) string {
	switch {
	case imported:
		return "not proven (imported)"
	case k.DidNotBoot != nil:
		return "did not boot " + notes.mark(k.DidNotBoot.text())
	case k.Boots[results.OK] == 0:
		return "n/a (no boot)"
	case len(k.Unproven) > 0:
		return "UNPROVEN " + notes.mark(strings.Join(k.Unproven, "; "))
	}
	return "proven"
}

// text says how far the kernel came.
func (f *BootFailure) text() string {
	s := f.Stage
	if f.Reason != "" {
		if s != "" {
			s += ": "
		}
		s += f.Reason
	}
	if n := len(f.LastLines); n > 0 {
		s += "; last console line: " + strings.TrimSpace(f.LastLines[n-1])
	}
	return s
}

// outcomes is one line per lane.
func outcomes(src *source, width int) section {
	s := section{title: "Outcomes (trials, warm-ups left out)"}
	all := []results.Outcome{results.OK, results.Failed, results.BootFailed, results.Lost, results.Invalid,
		results.Interrupted, results.Skipped, results.NotApplicable}
	all = slices.DeleteFunc(all, func(o results.Outcome) bool {
		return o != results.OK && !slices.ContainsFunc(src.doc.Targets, func(t Target) bool { return t.Outcomes[o] > 0 })
	})
	tab := table{labels: 1, head: []string{"target"}}
	for _, o := range all {
		tab.head = append(tab.head, string(o))
	}
	tab.head = append(tab.head, "not run")
	for _, t := range src.doc.Targets {
		row := []string{t.Name}
		for _, o := range all {
			row = append(row, fmt.Sprint(t.Outcomes[o]))
		}
		tab.rows = append(tab.rows, append(row, fmt.Sprint(t.NotRun)))
	}
	if len(tab.rows) == 0 {
		s.add("nothing recorded")
		return s
	}
	s.table(&tab, nil, width)
	return s
}
