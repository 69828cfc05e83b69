package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/results"
)

// failurePart is a boot or a trial that failed.
type failurePart struct {
	Head, Cause, Again string
	Boot               bool
	Lines              string // last ones of the console, newest last
	Left               int    // lines before them that are not shown
}

const (
	mostConsole  = 40  // lines of a console in a failure
	longestLine  = 400 // characters of one
	mostFailures = 200 // that are shown; the rest are in json
)

func failureParts(d *Document) []failurePart {
	var out []failurePart
	for i, f := range d.Failures {
		if i == mostFailures {
			out = append(out, failurePart{Head: fmt.Sprintf("%d more failures", len(d.Failures)-i), Cause: "see --format json", Again: d.call("kernsweep rerun " + paste.Word(d.Run.Name) + " --failed")})
			break
		}
		p := failurePart{Head: joined(" / ", f.Target, f.Kernel) + ": " + f.What, Cause: joined(": ", f.Stage, f.Reason), Again: f.Again, Boot: strings.HasPrefix(f.What, "boot")}
		if f.Count > 1 {
			p.Head += fmt.Sprintf(" and %d more alike", f.Count-1)
		}
		if f.Outcome != "" {
			p.Head += ": " + string(f.Outcome)
		}
		if p.Cause == "" {
			p.Cause = "n/a (no reason recorded)"
		}
		p.Left = max(0, len(f.LastLines)-mostConsole)
		var lines []string
		for _, l := range f.LastLines[p.Left:] {
			lines = append(lines, cut(clean(strings.TrimRight(l, "\r\n")), longestLine))
		}
		p.Lines = strings.Join(lines, "\n")
		out = append(out, p)
	}
	// What never came up stands before what ran and failed.
	slices.SortStableFunc(out, func(a, b failurePart) int {
		switch {
		case a.Boot == b.Boot:
			return 0
		case a.Boot:
			return -1
		}
		return 1
	})
	return out
}

// historyPart is what several sessions and attempts mean.
type historyPart struct {
	Sessions []sessionRow
	Says     []string
	Repeated []repeatedRow
	Left     int // slots with several attempts that are not shown
}

type sessionRow struct{ Number, Began, Ended, Why string }

type repeatedRow struct{ Cell, Slot, Attempts, Counts, Old, First string }

func newHistory(d *Document) historyPart {
	h := historyPart{}
	for i, x := range d.Sessions {
		ended := strings.TrimPrefix(strings.TrimPrefix(sessionEnd(x, i+1 == len(d.Sessions), d.Running != ""), ", "), " to ")
		h.Sessions = append(h.Sessions, sessionRow{fmt.Sprint(i + 1), at(x.Began), ended, orDefault(x.Why, "the first")})
	}
	for _, m := range d.Mixed {
		h.Says = append(h.Says, fmt.Sprintf("Block %d on %s holds trials of sessions %s, %s apart: the kernel and the day cannot be told apart there.",
			m.Block, m.Target, numbers(m.Sessions), apart(m.ApartS)))
	}
	for _, t := range d.Targets {
		if t.Cut != nil {
			h.Says = append(h.Says, fmt.Sprintf("Left out on %s, since it would not have ended before %s: blocks from %d on, %s. %s measures them.",
				t.Name, at(t.Cut.Until), t.Cut.Block, several(t.Cut.Trials, "trial"), d.call("kernsweep resume "+paste.Word(d.Run.Name))))
		}
		if e := t.Enough; e != nil {
			h.Says = append(h.Says, fmt.Sprintf("%s had enough after %d blocks: the widest interval, of %s, has a half width of %s %%; %s %% was wanted.",
				t.Name, e.Blocks, e.Widest, figureText(e.HalfWidth*100), figureText(e.Wanted*100)))
		}
		if t.NotRun > 0 {
			h.Says = append(h.Says, fmt.Sprintf("Of %s not run: %s.", t.Name, several(t.NotRun, "planned trial")))
		}
	}
	for _, x := range d.Later {
		h.Says = append(h.Says, fmt.Sprintf("%s: skipped at first, and measured by a later session: %s: %s", x.Target, several(x.Trials, "trial"), x.Cause))
	}
	h.Left = max(0, len(d.Repeated)-mostRepeated)
	for _, r := range d.Repeated[:len(d.Repeated)-h.Left] {
		counts := "none"
		if r.Counts > 0 {
			counts = fmt.Sprintf("%d (session %d)", r.Counts, r.Session)
		}
		h.Repeated = append(h.Repeated, repeatedRow{r.Cell.String(), fmt.Sprintf("block %d, repeat %d", r.Block, r.Repeat),
			fmt.Sprint(r.Attempts), counts, orDefault(superseded(r.Old), "none"), orDefault(r.FirstFailure, "none")})
	}
	return h
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// notePart is a note of the journal; what it says again and again stands once.
type notePart struct{ At, Lane, Text string }

func noteParts(d *Document) []notePart {
	type key struct{ lane, text string }
	times := map[key]int{}
	for _, n := range d.Notes {
		times[key{n.Lane, n.Text}]++
	}
	var out []notePart
	for _, n := range d.Notes {
		k := key{n.Lane, n.Text}
		if times[k] == 0 {
			continue
		}
		p := notePart{at(n.At), n.Lane, n.Text}
		if times[k] > 1 {
			p.Text += fmt.Sprintf(" (%d times)", times[k])
		}
		times[k] = 0
		out = append(out, p)
	}
	return out
}

// manifestPart is what somebody needs who wants the same again.
type manifestPart struct {
	Facts   []pageFact
	Hashes  []hashRow
	Files   []results.ImportedFile
	Kernels []manifestKernel
}

type hashRow struct{ What, Name, SHA256 string }

type manifestKernel struct {
	Target, Kernel, Release, Scheduler, Proof string
	Boots                                     string
	Evidence                                  []string
	IDs                                       []string
}

func newManifest(d *Document) manifestPart {
	r := d.Run
	m := manifestPart{Facts: []pageFact{
		{"Run", r.Name}, {"Identity", orNone(r.ID)}, {"Made", r.Created.UTC().Format(time.RFC3339)},
		{"By", orNone(r.Who) + " on " + orNone(r.Host)}, {"kernsweep", orNone(r.Version)},
		{"Command", orNone(strings.Join(r.Command, " "))}, {"Seed", fmt.Sprint(r.Seed)}, {"Plan hash", orNone(r.PlanHash)},
		{"Format of the run directory", fmt.Sprint(r.Format)}, {"Design", designText(d.Design)}}}
	if r.Imported == nil {
		m.Facts = append(m.Facts, pageFact{"Measure again", d.call("kernsweep run " + paste.Word(r.Sweep))}, pageFact{"More blocks of this run", d.call("kernsweep rerun " + paste.Word(r.Name))})
	} else if r.Imported.Note != "" {
		m.Facts = append(m.Facts, pageFact{"Note of the importer", r.Imported.Note})
	}
	for _, p := range slices.Sorted(maps.Keys(r.Images)) {
		m.Hashes = append(m.Hashes, hashRow{"image", p, r.Images[p]})
	}
	for _, p := range slices.Sorted(maps.Keys(r.Agents)) {
		m.Hashes = append(m.Hashes, hashRow{"agent", p, r.Agents[p]})
	}
	if r.Imported != nil {
		m.Files = r.Imported.Files
	}
	for i := range d.Targets {
		for j := range d.Targets[i].Kernels {
			m.Kernels = append(m.Kernels, newManifestKernel(d, &d.Targets[i], &d.Targets[i].Kernels[j]))
		}
	}
	return m
}

func orNone(s string) string { return orDefault(s, "n/a (not recorded)") }

func designText(x results.Design) string {
	order := x.Order
	switch order {
	case "":
		order = "order not known"
	case "blocked":
		order = "blocked: order and kernel cannot be told apart"
	}
	s := order
	if x.Auto {
		s += fmt.Sprintf("; boots added until intervals are narrow, at least %d, at most %d", x.MinBoots, x.MaxBoots)
	}
	if x.HalfWidth > 0 {
		s += fmt.Sprintf("; wanted half width %s %%", figureText(x.HalfWidth*100))
	}
	if x.Effect > 0 {
		s += fmt.Sprintf("; smallest effect of interest %s %%", figureText(x.Effect*100))
	}
	if len(x.Primary) > 0 {
		s += "; primary: " + strings.Join(x.Primary, ", ")
	}
	if x.NoiseFloor {
		s += "; A/A run: each kernel beside itself"
	}
	return s
}

const mostIDs = 64 // boot_ids of a kernel that are listed

func newManifestKernel(d *Document, t *Target, k *Kernel) manifestKernel {
	m := manifestKernel{Target: t.Name, Kernel: k.Name, Release: release(k, d.Run.Imported != nil),
		Scheduler: scheduler(k, d.Run.Imported != nil), Boots: bootCounts(k, d.Run.Imported != nil)}
	switch {
	case d.Run.Imported != nil:
		m.Proof = "not proven (imported)"
	case k.DidNotBoot != nil:
		m.Proof = "did not boot: " + k.DidNotBoot.text()
	case k.Boots[results.OK] == 0:
		m.Proof = "n/a (no boot)"
	case len(k.Unproven) > 0:
		m.Proof = "UNPROVEN: " + strings.Join(k.Unproven, "; ")
	default:
		m.Proof = "proven"
	}
	for _, b := range d.Boots {
		if b.Result == nil || b.Lane != t.Name || b.Result.Kernel != k.Name || b.Result.Outcome != results.OK {
			continue
		}
		for _, e := range b.Result.Record.Scheduler.Evidence {
			m.Evidence = addNew(m.Evidence, e)
		}
		for _, e := range b.Result.Record.Scheduler.Conflicts {
			m.Evidence = addNew(m.Evidence, "CONFLICT: "+e)
		}
		if id := b.Result.Record.BootID; id != "" {
			m.IDs = append(m.IDs, fmt.Sprintf("boot %d: %s", b.Number, id))
		}
	}
	if n := len(m.IDs) - mostIDs; n > 0 {
		m.IDs = append(m.IDs[:mostIDs], fmt.Sprintf("and %d more", n))
	}
	return m
}
