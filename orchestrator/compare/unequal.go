package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// cellsOf are the cells of a run that were meant to be measured, or were.
func cellsOf(r *RunSide, sel *Selection) []results.Cell {
	var out []results.Cell
	seen := map[results.Cell]bool{}
	add := func(c results.Cell) {
		if !seen[c] && sel.has(c) {
			seen[c] = true
			out = append(out, c)
		}
	}
	for _, c := range r.State.Plan.Cells {
		if c.NA == "" {
			add(c.Cell)
		}
	}
	for _, c := range r.State.Model.Cells() {
		add(c)
	}
	return out
}

// sharedCells are those that both runs measure in the same way, in b's order,
// and a sentence for each that they do not.
func sharedCells(a, b *RunSide, sel *Selection) (shared []results.Cell, differences []string) {
	inA, inB := cellsOf(a, sel), cellsOf(b, sel)
	hasA := map[results.Cell]bool{}
	for _, c := range inA {
		hasA[c] = true
		if !slices.Contains(inB, c) {
			differences = append(differences, fmt.Sprintf("only in %s: %s", a.Meta.Name, c))
		}
	}
	for _, c := range inB {
		if !hasA[c] {
			differences = append(differences, fmt.Sprintf("only in %s: %s", b.Meta.Name, c))
		}
	}
	told := map[string]bool{}
	for _, c := range inB {
		if !hasA[c] {
			continue
		}
		why := designDiffers(a, b, c)
		if why == "" {
			shared = append(shared, c)
			continue
		}
		if text := fmt.Sprintf("%s.%s: %s", c.Workload, c.Scenario, why); !told[text] {
			told[text] = true
			differences = append(differences, text)
		}
	}
	return shared, differences
}

// designDiffers says how a cell was measured otherwise in the two runs.
func designDiffers(a, b *RunSide, c results.Cell) string {
	var parts []string
	x, y := metricsOf(a.State, c), metricsOf(b.State, c)
	if len(x) > 0 && len(y) > 0 {
		parts = metricsDiffer(x, y)
	}
	if i, j := plannedCell(a, c), plannedCell(b, c); i != nil && j != nil && i.Warmup != j.Warmup {
		parts = append(parts, fmt.Sprintf("warm-up trials %d, then %d", i.Warmup, j.Warmup))
	}
	if list := settingsDiffer(a.Settings, b.Settings, fmt.Sprintf("workload %s (%s): ", c.Workload, c.Scenario)); len(list) > 0 {
		parts = append(parts, "other parameters: "+strings.Join(list, ", "))
	}
	return strings.Join(parts, "; ")
}

func metricsDiffer(x, y []workloads.Metric) []string {
	var parts []string
	for _, m := range y {
		i := slices.IndexFunc(x, func(o workloads.Metric) bool { return o.Name == m.Name })
		switch {
		case i < 0:
			parts = append(parts, "metric "+m.Name+" is new")
		case x[i].Unit != m.Unit:
			parts = append(parts, fmt.Sprintf("metric %s was in %q and is in %q", m.Name, x[i].Unit, m.Unit))
		case x[i].Better != m.Better:
			parts = append(parts, fmt.Sprintf("metric %s: %s was better, now %s is", m.Name, x[i].Better, m.Better))
		}
	}
	for _, m := range x {
		if !slices.ContainsFunc(y, func(o workloads.Metric) bool { return o.Name == m.Name }) {
			parts = append(parts, "metric "+m.Name+" is gone")
		}
	}
	return parts
}

func plannedCell(r *RunSide, c results.Cell) *results.PlannedCell {
	for i := range r.State.Plan.Cells {
		if r.State.Plan.Cells[i].Cell == c {
			return &r.State.Plan.Cells[i]
		}
	}
	return nil
}

// settingsDiffer names the settings with a prefix that are not equal. Nothing is
// known where one run kept none.
func settingsDiffer(a, b map[string]string, prefix string) []string {
	if a == nil || b == nil {
		return nil
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if name, ok := strings.CutPrefix(k, prefix); ok && a[k] != b[k] {
			out = append(out, name)
		}
	}
	return out
}

// otherMachines says which targets are another machine in b, by their names.
func otherMachines(a, b *RunSide, shared []results.Cell) map[string]string {
	out := map[string]string{}
	for _, c := range shared {
		if _, done := out[c.Target]; done {
			continue
		}
		out[c.Target] = ""
		then, now := identity(a.State.Model, c.Target), identity(b.State.Model, c.Target)
		if then == nil || now == nil {
			continue
		}
		if why := then.Differs(now); why != "" {
			out[c.Target] = fmt.Sprintf("ANOTHER MACHINE goes by the name %s now (%s): what differs may be the machine's", c.Target, why)
		}
	}
	return out
}

// identity is the newest that a good boot of the target recorded.
func identity(m *results.Model, target string) *targets.Identity {
	for _, b := range slices.Backward(m.Boots) {
		if b.Lane == target && b.Result != nil && b.Result.Outcome == results.OK && b.Result.Record.Identity != nil {
			return b.Result.Record.Identity
		}
	}
	return nil
}

// imagesOf are the hashes of what a kernel on a target booted.
func (r *RunSide) imagesOf(kernel, target string) map[string]string {
	out := map[string]string{}
	for k, hash := range r.Images {
		if what, ok := strings.CutPrefix(k, kernel+" on "+target+": "); ok {
			out[what] = hash
		}
	}
	return out
}

// imageChanges tells for each kernel on each target whether both runs booted the
// same bytes; those that did are not listed.
func imageChanges(a, b *RunSide, shared []results.Cell) []string {
	var out []string
	seen := map[[2]string]bool{}
	for _, c := range shared {
		k := [2]string{c.Kernel, c.Target}
		if seen[k] {
			continue
		}
		seen[k] = true
		x, y := a.imagesOf(c.Kernel, c.Target), b.imagesOf(c.Kernel, c.Target)
		switch {
		case len(x) == 0 || len(y) == 0:
			out = append(out, fmt.Sprintf("kernel %s on %s: which bytes were booted is not on file for both runs", c.Kernel, c.Target))
		case !maps.Equal(x, y):
			out = append(out, fmt.Sprintf("kernel %s on %s: %s", c.Kernel, c.Target, strings.Join(hashesDiffer(x, y), "; ")))
		}
	}
	return out
}

func hashesDiffer(x, y map[string]string) []string {
	all := maps.Clone(x)
	maps.Copy(all, y)
	var out []string
	for _, what := range slices.Sorted(maps.Keys(all)) {
		switch {
		case x[what] == y[what]:
		case x[what] == "":
			out = append(out, what+" is new")
		case y[what] == "":
			out = append(out, what+" is gone")
		default:
			out = append(out, fmt.Sprintf("%s has changed (%.8s, now %.8s)", what, x[what], y[what]))
		}
	}
	return out
}

// runNotes say what a difference between two runs can mean.
func runNotes(a, b *RunSide, shared []results.Cell) []string {
	if a.Meta.ID != "" && a.Meta.ID == b.Meta.ID {
		return []string{"both are the same run: it agrees with itself, and that shows nothing"}
	}
	days := fmt.Sprintf("%s and %s", a.Meta.Created.UTC().Format("2006-01-02 15:04"), b.Meta.Created.UTC().Format("2006-01-02 15:04 UTC"))
	var out []string
	if len(imageChanges(a, b, shared)) > 0 {
		out = append(out, fmt.Sprintf("the runs were made on %s: where the kernel's bytes changed too, a change of the kernel, of the device and of the day cannot be told apart; both kernels in one sweep can", days))
	} else {
		out = append(out, fmt.Sprintf("every kernel booted the same bytes in both runs (%s): what differs is the device's, the day's, or that of what else changed there", days))
	}
	if a.Settings == nil || b.Settings == nil {
		out = append(out, "the parameters of the workloads are not on file for both runs: only names, metrics and units were compared")
	} else {
		for _, prefix := range []string{"kernel ", "target "} {
			if list := settingsDiffer(a.Settings, b.Settings, prefix); len(list) > 0 {
				out = append(out, fmt.Sprintf("settings of %ss that changed: %s", strings.TrimSpace(prefix), listed(list)))
			}
		}
	}
	if a.Meta.Version != b.Meta.Version {
		out = append(out, fmt.Sprintf("made with kernsweep %s, then %s", a.Meta.Version, b.Meta.Version))
	}
	return out
}
