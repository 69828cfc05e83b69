package validity

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
)

// kernelConfig are a kernel's options without CONFIG_. One that is known to the
// kernel and not set is "n"; one that is not mentioned is not there.
type kernelConfig map[string]string

// parseConfig reads a .config. It returns nil when the text is none.
func parseConfig(text []byte) kernelConfig {
	c := kernelConfig{}
	for line := range bytes.Lines(text) {
		l := strings.TrimSpace(string(line))
		if name, ok := strings.CutPrefix(l, "# CONFIG_"); ok {
			if name, ok = strings.CutSuffix(name, " is not set"); ok {
				c[name] = "n"
			}
			continue
		}
		name, value, ok := strings.Cut(l, "=")
		if name, isOption := strings.CutPrefix(name, "CONFIG_"); ok && isOption && name != "" {
			c[name] = strings.Trim(value, `"`)
		}
	}
	if len(c) == 0 {
		return nil
	}
	return c
}

// config is the configuration of a boot's kernel, nil when none is on file. Each
// distinct file is parsed once.
func (f *bootFiles) config(b *results.BootState) kernelConfig {
	for _, name := range []string{"probe/config.gz", "probe/config"} {
		raw, ok := f.boot(b, name)
		if !ok {
			continue
		}
		sum := sha256.Sum256(raw)
		if c, seen := f.configs[sum]; seen {
			return c
		}
		text, err := raw, error(nil)
		if strings.HasSuffix(name, ".gz") {
			text, err = unzip(raw)
		}
		c := parseConfig(text)
		if err == nil && c == nil {
			err = fmt.Errorf("no kernel option stands in it")
		}
		if err != nil { // half of it would show differences that are none
			f.fail(filepath.Join(f.run.BootDir(b.Lane, b.Number), name), err)
			c = nil
		}
		f.configs[sum] = c
		return c
	}
	return nil
}

func unzip(raw []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, mostBytes))
	if err == nil && len(text) == mostBytes {
		err = fmt.Errorf("longer than %d MiB", mostBytes>>20)
	}
	return text, err
}

func configRules() []runRule {
	return []runRule{
		{Rule{Name: "different configurations", Threshold: "no option differs beyond the scheduler's own",
			Why: "A tick, a preemption model or a debug option costs more than most schedulers save."}, configsDiffer},
	}
}

// config is the configuration of a kernel on a target, nil when none is on file.
// Boots of one build have one: the first few are asked for it.
func (v *view) config(s *side) kernelConfig {
	if c, seen := v.configs[s]; seen {
		return c
	}
	v.configs[s] = nil
	for _, b := range s.boots[:min(3, len(s.boots))] {
		if c := v.files.config(b); c != nil {
			v.configs[s] = c
			break
		}
	}
	return v.configs[s]
}

// configsDiffer compares the configurations of each pair of kernels.
func configsDiffer(v *view) []results.Found {
	var out []results.Found
	for _, p := range v.pairs {
		a, b := v.config(p.base), v.config(p.kernel)
		if a == nil || b == nil {
			if v.imported || v.sameImage(p.kernel, p.base) {
				continue // said once for all; booted in two ways
			}
			out = append(out, configAbsent(p, a, b))
			continue
		}
		if f, ok := configFound(p, a, b); ok {
			out = append(out, f)
		}
	}
	return out
}

func configAbsent(p pair, base, kernel kernelConfig) results.Found {
	which := "of neither kernel"
	switch {
	case base != nil:
		which = "of " + p.kernel.kernel + " not"
	case kernel != nil:
		which = "of " + p.base.kernel + " not"
	}
	f := p.about("the kernel configuration is not on file: whether the kernels differ in more than the scheduler cannot be compared")
	f.Evidence = "there is one " + which + " (/proc/config.gz or /boot/config-RELEASE on the target gives it)"
	if which == "of neither kernel" {
		f.Evidence = "none " + which + " (/proc/config.gz or /boot/config-RELEASE on the target gives it)"
	}
	return f
}

// change is an option that two kernels have differently.
type change struct {
	name       string
	base, have string
	weight     int // class of the option, the smaller the more it matters
}

func (c change) String() string {
	return fmt.Sprintf("%s: %s against %s", c.name, orAbsent(c.have), orAbsent(c.base))
}

func orAbsent(v string) string {
	switch v {
	case "":
		return "absent"
	case "n":
		return "not set"
	}
	return v
}

// configFound names first what can by itself explain a difference; the
// scheduler's own options are what is compared, and are listed after.
func configFound(p pair, base, kernel kernelConfig) (results.Found, bool) {
	changes := configChanges(base, kernel)
	var costs, own, rest []change
	for _, c := range changes {
		switch c.weight {
		case ofScheduler:
			own = append(own, c)
		case ofNothing:
			rest = append(rest, c)
		default:
			costs = append(costs, c)
		}
	}
	if len(costs)+len(rest) == 0 {
		return results.Found{}, false
	}
	f := p.about(fmt.Sprintf("the kernels differ in %d options beyond the scheduler, none of them known to change speed by itself", len(rest)))
	if len(costs) > 0 {
		f = p.about("the kernels differ in more than the scheduler, and these options can explain a difference by themselves: " + shortly(costs))
	}
	f.Evidence = fmt.Sprintf("%d options that can matter by themselves, %d of the scheduler, %d others differ", len(costs), len(own), len(rest))
	for _, list := range [][]change{costs, own, rest} {
		for _, c := range list {
			f.Detail = append(f.Detail, c.String()+classNote(c.weight))
		}
	}
	return f, true
}

// shortly names the options that say most, at most two of each class, and counts
// the rest.
func shortly(list []change) string {
	const most = 6
	var words []string
	of := map[int]int{}
	follows := func(n string) bool { // what another option of the list sets
		return strings.HasPrefix(n, "HZ_") || strings.HasPrefix(n, "CC_IS_") || n == "GCC_VERSION" || n == "PREEMPTION" || n == "PREEMPT_BUILD" || n == "PREEMPT_COUNT"
	}
	for _, second := range []bool{false, true} {
		for _, c := range list {
			if n := of[c.weight]; follows(c.name) == second && n < 2 && !(second && n > 0) && len(words) < most {
				of[c.weight]++
				words = append(words, c.String())
			}
		}
	}
	if more := len(list) - len(words); more > 0 {
		return strings.Join(words, "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(words, "; ")
}

// configChanges are the options that differ, those that matter most first. An
// option that one of them does not mention is off there.
func configChanges(base, kernel kernelConfig) []change {
	base, kernel = renamed(base), renamed(kernel)
	names := map[string]bool{}
	for n := range base {
		names[n] = true
	}
	for n := range kernel {
		names[n] = true
	}
	var out []change
	for _, n := range slices.Sorted(maps.Keys(names)) {
		a, inBase := base[n]
		b, inKernel := kernel[n]
		if a == b || cmp.Or(a, "n") == cmp.Or(b, "n") {
			continue
		}
		weight := weightOf(n)
		if weight == ofLabel || n == "CC_VERSION_TEXT" && compilerOf(a) == compilerOf(b) {
			continue
		}
		// What one of them does not mention may be its only way, or follow another option.
		if (!inBase || !inKernel) && (unsaid(n) || weight == ofMitigations || !switched(a, b)) {
			weight = ofNothing
		}
		out = append(out, change{n, a, b, weight})
	}
	slices.SortStableFunc(out, func(x, y change) int { return cmp.Compare(x.weight, y.weight) })
	return out
}

// switched reports whether the option is one that is on in one of them.
func switched(a, b string) bool { return a == "y" || a == "m" || b == "y" || b == "m" }

// unsaid are options that kernels had no word for before they gave a choice.
func unsaid(name string) bool { return strings.HasPrefix(name, "PAGE_SIZE_") }
