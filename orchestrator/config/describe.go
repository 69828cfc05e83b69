package config

import (
	"reflect"
	"regexp"
	"strings"

	"kernsweep/orchestrator/notify"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// BlockDoc describes a kind of block of testbeds.hcl.
type BlockDoc struct {
	Kind       string // the word that begins it
	Driver     string // what its first label is, where that chooses what may stand in it; else ""
	Title      string // as it is written, without its content
	In         string // the block that it stands in; "": the file
	Doc        string // what it is, a sentence without its full stop
	Example    string // that can be parsed; may be ""
	Attributes []AttributeDoc
	Inner      []string // kinds of the blocks in it, without those of drivers' own
}

// AttributeDoc describes an attribute, by the tags that the decoder uses.
type AttributeDoc struct {
	Name     string
	Type     string // as Reference writes it: text, number, duration, list of kernel.NAME, …
	Doc      string
	Default  string // as the description says it; "": none said
	Required bool
	Choices  []string // all texts that are allowed; nil: others are, too
}

// Introduction says what testbeds.hcl is and how values are written.
const Introduction = `testbeds.hcl describes a lab: its targets, the kernels that they boot, the workloads that are run on them, and the sweeps that say what is measured with what. kernsweep reads one file, or all *.hcl of a folder (not of those in it), named by -f.

The syntax is HCL's: blocks with labels, attributes, references such as kernel.bfs or class.router, locals, variables (--var name=value, KERNSWEEP_VAR_name) and functions. A label is an identifier of at most 64 characters.

An unknown attribute or block is an error that names file, line and column. Text is quoted: 5.10 without quotes is refused where a text is wanted. A duration is a text with units, "90s" or "1h30m", a percentage is a text such as "1%". A command keeps the shell's $VAR; only ${…} is a template. Secrets come from the environment or from files, never from the text itself.`

// Blocks describes every block of testbeds.hcl, in the order of a reference:
// what stands in a block follows it.
func Blocks() []BlockDoc {
	d := allDrivers()
	var list []BlockDoc
	add := func(b BlockDoc, content any) {
		if b.Title == "" {
			b.Title = b.Kind
			if b.Driver != "" {
				b.Title += ` "` + b.Driver + `"`
			}
		}
		b.Attributes, b.Inner = describe(reflect.TypeOf(content))
		list = append(list, b)
	}
	add(BlockDoc{Kind: "target", Title: `target "NAME", class "NAME"`, Example: exampleTarget,
		Doc: "A target is one machine, a class what several share: a target takes from its class what it has not itself"}, targetBlock{})
	add(BlockDoc{Kind: "ssh", In: "target", Doc: "How the target is reached"}, targets.SSH{})
	add(BlockDoc{Kind: "network", In: "target", Doc: "Addresses for workloads between the target and a peer"}, targets.Network{})
	add(BlockDoc{Kind: "timeouts", In: "target", Doc: "Deadlines of a boot and of small commands"}, targets.Timeouts{})
	add(BlockDoc{Kind: "failures", In: "target", Doc: "What is made of infrastructure failures"}, Failures{})
	drivers := func(kind, in, title, doc, example string, names []string, content func(string) any) {
		for _, n := range names {
			b := BlockDoc{Kind: kind, Driver: n, In: in, Doc: doc}
			if title != "" {
				b.Title = strings.ReplaceAll(title, "KIND", n)
			}
			if n == names[0] {
				b.Example = example
			}
			add(b, reflect.ValueOf(content(n)).Elem().Interface())
		}
	}
	drivers("boot", "target", "", "A boot method: how a kernel is started", "", keys(d.boot), func(n string) any { return d.boot[n]() })
	drivers("power", "target", "", "A power driver: how the target is switched off and on", "", keys(d.power), func(n string) any { return d.power[n]() })
	drivers("console", "target", "", "A console: recorded while the target boots, and watched for panics and hangs", "", keys(d.console), func(n string) any { return d.console[n]() })
	add(BlockDoc{Kind: "kernel", Title: `kernel "NAME"`, Example: exampleKernel, Doc: "A bootable variant: its images, its command line, and what must be true after the boot"}, kernelBlock{})
	add(BlockDoc{Kind: "image", Title: `image "ARCH or TARGET"`, In: "kernel", Doc: "The files that one architecture, or one target, boots"}, targets.Image{})
	add(BlockDoc{Kind: "workload", Title: `workload "KIND" "NAME", and its scenario "NAME" blocks`, Example: exampleWorkload,
		Doc: "What is run and measured; a scenario is a set of its attributes with a name of its own. These are of every kind"}, workloads.Common{})
	drivers("workload", "workload", `workload "KIND" "NAME"`, "", "", keys(d.workloads), func(n string) any { return d.workloads[n]() })
	add(BlockDoc{Kind: "sweep", Title: `sweep "NAME"`, Example: exampleSweep, Doc: "Which kernels are measured on which targets with which workloads, and how often"}, sweepBlock{})
	add(BlockDoc{Kind: "matrix", In: "sweep", Doc: "The product of its lists"}, matrixBlock{})
	add(BlockDoc{Kind: "notify", Title: "notify, whatever its kind", In: "sweep", Doc: "Who is told how the run goes"}, notify.Choice{})
	drivers("notify", "sweep", `notify "KIND", or notify "KIND" "NAME"`, "", "", keys(d.notify), func(n string) any { return d.notify[n]() })
	add(BlockDoc{Kind: "variable", Title: `variable "NAME"`, Example: exampleVariable, Doc: "A value that is given from outside, used as var.NAME"}, variableBlock{})
	return list
}

// Functions names the functions that expressions may call.
func Functions() []string { return keys((&loader{}).functions()) }

// describe reads the tags of a struct.
func describe(t reflect.Type) (attrs []AttributeDoc, inner []string) {
	for _, f := range fieldsOf(t) {
		if f.block {
			inner = append(inner, f.name)
			continue
		}
		a := AttributeDoc{Name: f.name, Type: typeName(f), Doc: f.doc, Required: !f.optional}
		if a.Doc == "" {
			a.Doc = undocumented
		}
		a.Default, a.Choices = defaultIn(f.doc), nil
		if a.Type == "text" {
			a.Choices = choicesIn(f.doc)
		}
		attrs = append(attrs, a)
	}
	return attrs, inner
}

// defaultIn finds what a description calls the default: "(default 5s)", "(default:
// the first)", or the choice that "(default)" follows.
func defaultIn(doc string) string {
	if _, rest, ok := strings.Cut(doc, "(default "); ok {
		return defaultEnd(rest)
	}
	if _, rest, ok := strings.Cut(doc, "(default: "); ok {
		return defaultEnd(rest)
	}
	if before, _, ok := strings.Cut(doc, " (default)"); ok {
		return before[strings.LastIndexAny(before, " ,;:")+1:]
	}
	return ""
}

// defaultEnd cuts at the bracket that closes the default, or at what is said beside it.
func defaultEnd(s string) string {
	depth := 0
	for i, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')' && depth > 0:
			depth--
		case r == ')' || r == ';' && depth == 0:
			return s[:i]
		}
	}
	return s
}

// choicesIn finds the texts that are allowed in a description that is a list of
// them: `"auto" (default), "go" or "shell"`.
func choicesIn(doc string) []string {
	choice := `"[a-zA-Z0-9-]+"`
	list := regexp.MustCompile(`^` + choice + `( \(default\))?(, ` + choice + `( \(default\))?)* or ` + choice + `( \(default[^)]*\))?($|[ ;:(])`)
	m := list.FindString(doc)
	if m == "" {
		return nil
	}
	var names []string
	for _, q := range regexp.MustCompile(choice).FindAllString(m, -1) {
		names = append(names, strings.Trim(q, `"`))
	}
	return names
}

const (
	exampleTarget = `class "openwrt" {
  ssh {
    user       = "root"
    algorithms = "legacy"
  }
}

target "wl500gpv2" {
  class      = class.openwrt
  arch       = "mipsle"
  known_good = kernel.cfs
  ssh {
    host = "192.168.1.1"
  }
  boot "none" {}
}
`
	exampleKernel = `kernel "bfs" {
  scheduler = "bfs"
  release   = "2.6.30.5*"
  image "mipsle" {
    kernel = "images/wl500-bfs.elf"
  }
}
`
	exampleWorkload = `workload "crunch" "ltm" {
  scenario "j1" {
    parallel = 1
  }
  scenario "j3" {
    parallel = 3
  }
}
`
	exampleSweep = `sweep "overnight" {
  kernels  = [kernel.cfs, kernel.bfs]
  baseline = kernel.cfs
  boots    = 5
  repeat   = 3
  matrix {
    targets   = [target.wl500gpv2]
    workloads = [workload.crunch.ltm]
  }
}
`
	exampleVariable = `variable "images" {
  default     = "images"
  description = "folder of the kernels"
}
`
)
