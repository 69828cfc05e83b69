package validity

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
)

var seriesPattern = regexp.MustCompile(`^(\d+)\.(\d+)(?:\.(\d+))?`)

// seriesOf is the series of a release: "6.1" of "6.1.0-50-amd64", "2.6.30" of
// "2.6.30.5-bfs": before 3.0 the third number was the series'.
func seriesOf(release string) string {
	m := seriesPattern.FindStringSubmatch(release)
	switch {
	case m == nil:
		return ""
	case m[1] == "2" && m[3] != "":
		return m[1] + "." + m[2] + "." + m[3]
	}
	return m[1] + "." + m[2]
}

func series(v *view) []results.Found {
	var out []results.Found
	of := func(b *results.BootState) string { return seriesOf(b.Result.Record.Release) }
	for _, p := range v.pairs {
		a, b := p.kernel.among(of), p.base.among(of)
		if len(a) == 0 || len(b) == 0 || alike(a, b) {
			continue
		}
		f := p.about(fmt.Sprintf("Linux %s and %s are different kernels, not only different schedulers: a difference is one of all that changed between them", short(a, 2), short(b, 2)))
		f.Evidence = fmt.Sprintf("%s against %s", short(p.kernel.among(release), 2), short(p.base.among(release), 2))
		out = append(out, f)
	}
	return out
}

func architectures(v *view) []results.Found {
	return v.differ(func(b *results.BootState) string { return b.Result.Record.Machine }, "the kernels are of different architectures: they run other code")
}

func release(b *results.BootState) string { return b.Result.Record.Release }

// loaderParameters say where a boot loader found the files; no kernel behaves by them.
var loaderParameters = regexp.MustCompile(`^(?:BOOT_IMAGE|initrd|rd_start|rd_size|kernsweep\.nonce|BOOTIF)(?:=|$)`)

// parameters of a boot's command line, without its nonce, and without where a boot
// loader found the files.
func parameters(b *results.BootState) []string {
	var out []string
	for _, w := range strings.Fields(b.Result.Record.Cmdline) {
		if w != b.Result.Record.Nonce && !loaderParameters.MatchString(w) && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	slices.Sort(out)
	return out
}

func commandLines(v *view) []results.Found {
	var out []results.Found
	line := func(b *results.BootState) string { return strings.Join(parameters(b), " ") }
	known := map[*side][]string{}
	lines := func(s *side) []string {
		if known[s] == nil {
			known[s] = s.among(line)
		}
		return known[s]
	}
	for _, p := range v.pairs {
		a, b := lines(p.kernel), lines(p.base)
		if alike(a, b) || !p.kernel.tells(cmdline) || !p.base.tells(cmdline) || len(a)+len(b) == 0 {
			continue
		}
		mine, its := only(a, b), only(b, a)
		if len(mine)+len(its) == 0 {
			continue // boots of each differ in the same way
		}
		f := p.about("the kernel command lines differ: a parameter can explain a difference by itself")
		var parts []string
		for _, x := range []struct {
			kernel string
			words  []string
		}{{p.kernel.kernel, mine}, {p.base.kernel, its}} {
			if len(x.words) > 0 {
				parts = append(parts, fmt.Sprintf("only with %s: %s", x.kernel, strings.ReplaceAll(short(x.words, 6), ", ", " ")))
			}
		}
		f.Evidence = strings.Join(parts, "; ")
		out = append(out, f)
	}
	return out
}

func cmdline(b *results.BootState) string { return b.Result.Record.Cmdline }

// tells reports whether any boot gives a word.
func (s *side) tells(of func(*results.BootState) string) bool {
	return slices.ContainsFunc(s.boots, func(b *results.BootState) bool { return of(b) != "" })
}

// only are the parameters of the lines of a that no line of b has.
func only(a, b []string) []string {
	its := map[string]bool{}
	for _, l := range b {
		for _, w := range strings.Fields(l) {
			its[w] = true
		}
	}
	var out []string
	for _, l := range a {
		for _, w := range strings.Fields(l) {
			if !its[w] && !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return out
}

// compilers are read of one boot of each build.
func compilers(v *view) []results.Found {
	known := map[string]string{}
	return v.differ(func(b *results.BootState) string {
		build := b.Lane + "\x00" + buildOf(b)
		c, ok := known[build]
		if !ok {
			text, _ := v.files.boot(b, "probe/version")
			_, after, _ := strings.Cut(string(text), ") (") // the release may hold any word
			c = compilerOf("(" + after)
			known[build] = c
		}
		return c
	}, "the kernels were built by different compilers, which lay out and optimize all of the kernel anew")
}

// buildOf tells one build of a kernel from another: uname -r and uname -v.
func buildOf(b *results.BootState) string {
	return strings.TrimSpace(b.Result.Record.Release + " " + b.Result.Record.Version)
}

// agents are those of the first trial of each boot.
func agents(v *view) []results.Found {
	first := map[bootKey]*results.Attempt{}
	for i := range v.cells {
		for _, a := range v.cells[i].trials {
			if k := (bootKey{a.Slot.Target, a.Slot.Boot}); first[k] == nil {
				first[k] = a
			}
		}
	}
	return v.differ(func(b *results.BootState) string {
		a := first[bootKey{b.Lane, b.Number}]
		if a == nil {
			return ""
		}
		return v.files.agent(a)
	}, "the trials were measured by different agents")
}

type bootKey struct {
	target string
	number int
}

// tools compares those that the workloads of a target use.
func tools(v *view) []results.Found {
	var out []results.Found
	for _, t := range []struct {
		kind  kind
		names []string
	}{{kindIperf, []string{"iperf", "iperf3"}}, {kindKernbench, []string{"make", "gcc"}}} {
		uses := map[string]string{} // target -> workload
		for i := range v.cells {
			if c := &v.cells[i]; c.kind == t.kind && len(c.trials) > 0 && uses[c.Target] == "" {
				uses[c.Target] = c.Workload
			}
		}
		for _, name := range t.names {
			of := func(b *results.BootState) string {
				if b.Result.Record.Tools == nil {
					return ""
				}
				if line := b.Result.Record.Tools[name]; line != "" {
					return line
				}
				return "no " + name
			}
			for _, f := range v.differ(of, "the versions of "+name+" differ: two tools measured") {
				if uses[f.Target] != "" {
					out = append(out, f)
				}
			}
		}
	}
	return out
}
