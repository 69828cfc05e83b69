package config

import (
	"fmt"
	"strings"
)

// sweepBlock is the content of a sweep block.
type sweepBlock struct {
	Note         string   `hcl:"note,optional" doc:"free text"`
	Kernels      []Ref    `hcl:"kernels,optional" ref:"kernel" doc:"kernels to boot, unless a matrix names its own"`
	Baseline     Ref      `hcl:"baseline,optional" ref:"kernel" doc:"kernel that others are compared with (default: the first)"`
	Boots        blocks   `hcl:"boots,optional" doc:"blocks: boots of each kernel on each target, the statistical sample (default 5); \"auto\": at least 5, then until every primary interval is as narrow as half_width, at most max_boots"`
	HalfWidth    percent  `hcl:"half_width,optional" doc:"half width of a 95 % interval that is narrow enough, such as \"1%\" (default 1%): boots = \"auto\" stops there, and a wider one that holds no change is inconclusive"`
	MaxBoots     int      `hcl:"max_boots,optional" doc:"blocks that boots = \"auto\" makes at most (default 15)"`
	Order        string   `hcl:"order,optional" doc:"\"interleaved\" (default): every block holds every kernel once; \"blocked\": all boots of one kernel, then those of the next, and order and kernel cannot be told apart"`
	Effect       percent  `hcl:"effect,optional" doc:"smallest change that matters, such as \"1%\" (default 1%, or a target's noise floor where that is larger)"`
	Primary      []string `hcl:"primary,optional" doc:"what the sweep is to decide, said beforehand: KIND.NAME or KIND.NAME.SCENARIO, and :METRIC where it is not the workload's primary one (default: the primary metric of every workload and scenario)"`
	Repeat       int      `hcl:"repeat,optional" doc:"trials of each cell inside one boot (default 3)"`
	Warmup       int      `hcl:"warmup,optional" doc:"trials of each cell at the start of a boot that are kept on file but do not count (default 1)"`
	Seed         int64    `hcl:"seed,optional" doc:"of the order; 0 (default): drawn when the run starts, and recorded"`
	BootFailures int      `hcl:"boot_failures,optional" doc:"failures of one kernel on one target before its other blocks are skipped (default 2)"`
	Rehearsed    duration `hcl:"rehearsed,optional" doc:"refuse to start unless every real target passed target doctor within this time (default: not asked)"`
	Matrices     []*block `hcl:"matrix,block"`
	Notify       []*block `hcl:"notify,block"`
}

// matrixBlock is the content of a matrix block: the product of its lists.
type matrixBlock struct {
	Targets   []Ref `hcl:"targets" ref:"target" doc:"targets"`
	Workloads []Ref `hcl:"workloads" ref:"workload" doc:"workloads, with all their scenarios"`
	Kernels   []Ref `hcl:"kernels,optional" ref:"kernel" doc:"kernels (default: the sweep's)"`
	Baseline  Ref   `hcl:"baseline,optional" ref:"kernel" doc:"baseline (default: the sweep's)"`
}

func (l *loader) addSweep(b *block) {
	raw := sweepBlock{Boots: 5, MaxBoots: MaxBoots, Repeat: 3, Warmup: 1, BootFailures: 2, Order: Interleaved}
	ok := l.decode(b, b.body, inBlock("sweep"), false, &raw)
	s := &Sweep{
		Name: b.name(), Note: raw.Note, Baseline: raw.Baseline.Name, Repeat: raw.Repeat,
		Warmup: raw.Warmup, Seed: raw.Seed, BootFailures: raw.BootFailures, Rehearsed: raw.Rehearsed, Pos: b.pos,
	}
	s.Kernels = l.names(raw.Kernels, "kernel")
	l.design(b, &raw, s)
	l.inRange(b.body, "repeat", s.Repeat, 1)
	l.inRange(b.body, "warmup", s.Warmup, 0)
	l.inRange(b.body, "boot_failures", s.BootFailures, 1)
	if s.Baseline == "" && len(s.Kernels) > 0 {
		s.Baseline = s.Kernels[0]
	} else if ok {
		l.baseline(raw.Baseline, s.Kernels)
	}
	if len(raw.Matrices) == 0 {
		l.err(b.pos, "write matrix { targets = […], workloads = […] }", "sweep %q has no matrix block", s.Name)
	}
	for _, in := range raw.Matrices {
		s.Matrices = append(s.Matrices, l.matrix(in, s, raw, ok))
	}
	l.primaries(b, raw.Primary, s)
	for _, in := range raw.Notify {
		l.notify(in, s)
	}
	l.lab.Sweeps = append(l.lab.Sweeps, s)
}

func (l *loader) matrix(in *block, s *Sweep, sweep sweepBlock, sound bool) Matrix {
	var raw matrixBlock
	m := Matrix{Pos: in.pos}
	if !l.labels(in, 0) || !l.decode(in, in.body, inBlock("matrix"), false, &raw) {
		return m
	}
	m.Targets = l.names(raw.Targets, "target")
	m.Workloads = l.names(raw.Workloads, "workload")
	m.Kernels = l.names(raw.Kernels, "kernel")
	for name, list := range map[string][]Ref{"targets": raw.Targets, "workloads": raw.Workloads} {
		if len(list) == 0 {
			l.atAttr(in.body, name, "is empty, so the matrix holds no cell")
		}
	}
	own := len(raw.Kernels) > 0
	if !own {
		m.Kernels = s.Kernels
	}
	if len(m.Kernels) == 0 && sound {
		l.err(in.pos, "write kernels = [kernel.NAME, …] here or in the sweep", "no kernels for this matrix")
		return m
	}
	m.Baseline = raw.Baseline.Name
	switch {
	case m.Baseline != "":
		l.baseline(raw.Baseline, m.Kernels)
	case !own:
		m.Baseline = s.Baseline
	case sweep.Baseline.Name == "":
		m.Baseline = m.Kernels[0]
	default:
		m.Baseline = s.Baseline
		if !contains(m.Kernels, s.Baseline) {
			l.err(in.pos, "add it, or give the matrix its own baseline", "the sweep's baseline kernel.%s is not among the kernels of this matrix", s.Baseline)
		}
	}
	return m
}

// checkPeers refuses a target that would be its own peer.
func (l *loader) checkPeers() {
	for _, s := range l.lab.Sweeps {
		for _, m := range s.Matrices {
			for _, id := range m.Workloads {
				w := l.lab.Workload(id)
				if w == nil {
					continue // it has errors of its own
				}
				for _, sc := range w.Scenarios {
					if contains(m.Targets, sc.Common.Peer) {
						l.err(m.Pos, fmt.Sprintf("scenario %q of workload.%s has peer = target.%s", sc.Name, id, sc.Common.Peer),
							"target %q would be its own peer", sc.Common.Peer)
					}
				}
			}
		}
	}
}

// baseline must be one of the kernels it is compared with.
func (l *loader) baseline(b Ref, kernels []string) {
	if b.Name != "" && len(kernels) > 0 && !contains(kernels, b.Name) {
		l.value(b.Pos, "the kernels are "+strings.Join(kernels, ", "), "the baseline kernel.%s is not among the kernels", b.Name)
	}
}

// names are the names of references, each of which may stand once.
func (l *loader) names(refs []Ref, kind string) []string {
	var list []string
	for _, r := range refs {
		if contains(list, r.Name) {
			l.value(r.Pos, "take one of them out", "%s.%s stands twice in the list", kind, r.Name)
			continue
		}
		list = append(list, r.Name)
	}
	return list
}

// maxCount bounds counts, so that a plan stays finite.
const maxCount = 100000

func (l *loader) inRange(m *body, name string, n, least int) {
	if n < least || n > maxCount {
		l.atAttr(m, name, fmt.Sprintf("must be from %d to %d", least, maxCount))
	}
}
