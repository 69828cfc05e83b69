package validity

import (
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

func bootRules() []runRule {
	return []runRule{
		{Rule{Name: "nothing proven", Threshold: "kernsweep booted, proved and probed what was measured",
			Why: "Old logs say what was measured, not under which conditions."}, importedRun},
		{Rule{Name: "unproven boots", Threshold: "every boot is proven: a new boot_id, the release, the nonce, the scheduler",
			Why: "Without proof it may have been another kernel, or the boot before."}, unprovenBoots},
		{Rule{Name: "boot counted twice", Hard: true, Threshold: "every boot of a target has a boot_id of its own",
			Why: "One boot that counts as two makes chance look like evidence."}, repeatedBoots},
		{Rule{Name: "several builds", Threshold: "all boots of a kernel ran one build of it",
			Why: "Figures of two builds under one name are figures of two kernels."}, severalBuilds},
		{Rule{Name: "kernel log at boot", Threshold: "no error in the kernel log before the first trial",
			Why: "Flash and disk that fail cost time in any trial that follows."}, bootLogs},
	}
}

func importedRun(v *view) []results.Found {
	if !v.imported {
		return nil
	}
	return []results.Found{{Finding: results.Finding{
		Text:     "made from other people's logs: no boot is proven, and kernel configuration, frequency settings and kernel log cannot be checked",
		Evidence: "the run was imported"}}}
}

func unprovenBoots(v *view) []results.Found {
	if v.imported {
		return nil // said once for all
	}
	var out []results.Found
	for _, s := range v.sides {
		n, why, at := 0, "", 0
		for _, b := range s.boots {
			if r := b.Result.Record; !r.Proven {
				if n++; n == 1 {
					why, at = r.Unproven, b.Number
				}
			}
		}
		if n == 0 {
			continue
		}
		if why == "" {
			why = "no reason is recorded"
		}
		f := s.about("it is not proven that this kernel ran: " + why)
		f.Evidence = fmt.Sprintf("%d of %d boots", n, len(s.boots))
		if n == 1 {
			f.Boot = at
		}
		out = append(out, f)
	}
	return out
}

// repeatedBoots is about later boots that are an earlier one: those do not count.
// A target that is never rebooted has one boot in every session of a run.
func repeatedBoots(v *view) []results.Found {
	var out []results.Found
	first := map[[2]string]*results.BootState{}
	for _, s := range v.sides {
		for _, b := range s.boots {
			id := b.Result.Record.BootID
			if id == "" {
				continue
			}
			k := [2]string{b.Lane, id}
			if first[k] == nil {
				first[k] = b
				continue
			}
			f := s.about(fmt.Sprintf("boot %d is the same boot as %d: it counts once", b.Number, first[k].Number))
			f.Boot, f.Evidence = b.Number, "boot_id "+id
			out = append(out, f)
		}
	}
	return out
}

func severalBuilds(v *view) []results.Found {
	var out []results.Found
	for _, s := range v.sides {
		builds := s.among(buildOf)
		if len(builds) < 2 {
			continue
		}
		f := s.about("not all boots of this kernel ran the same build: its figures are of several kernels")
		f.Evidence, f.Detail = fmt.Sprintf("%d builds in %d boots", len(builds), len(s.boots)), builds
		out = append(out, f)
	}
	return out
}

// bootLogs finds what the kernel complained of before any trial: it belongs to
// the boot, and no trial is blamed for it.
func bootLogs(v *view) []results.Found {
	type seen struct {
		line  string
		boots []int
	}
	kinds := map[string]string{} // of a line, whatever its numbers are
	var out []results.Found
	for _, s := range v.sides {
		var order []string
		signs := map[string]*seen{}
		for _, b := range s.boots {
			text, _ := v.files.boot(b, "dmesg.txt")
			for line := range strings.Lines(string(text)) {
				kind := logKind(line, kinds)
				if kind == "" {
					continue
				}
				if signs[kind] == nil {
					signs[kind] = &seen{line: strings.ToValidUTF8(strings.TrimSpace(line), "?")}
					order = append(order, kind)
				}
				if k := signs[kind]; !slices.Contains(k.boots, b.Number) {
					k.boots = append(k.boots, b.Number)
				}
			}
		}
		for _, kind := range order {
			k := signs[kind]
			f := s.about("the kernel complained before any trial (" + kind + "): it belongs to the boot, and may slow down what was measured in it")
			f.Evidence = fmt.Sprintf("in %d of %d boots, first in boot %d: %.200s", len(k.boots), len(s.boots), k.boots[0], k.line)
			if len(k.boots) == 1 {
				f.Boot = k.boots[0]
			}
			out = append(out, f)
		}
	}
	return out
}

// logKind is targets.LogSigns of a line. Boots of one kernel say the same, but
// for times and numbers, and reading a line costs more than knowing it again.
func logKind(line string, known map[string]string) string {
	key := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, line)
	kind, ok := known[key]
	if !ok {
		if signs := targets.LogSigns([]string{line}); len(signs) > 0 {
			kind = signs[0].Kind
		}
		known[key] = kind
	}
	return kind
}
