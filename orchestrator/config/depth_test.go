package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bomb nests one construct of HCL n levels deep.
func bomb(kind string, n int) string {
	in := func(open, core, end string) string {
		return "target \"r1\" {\n  host = " + strings.Repeat(open, n) + core + strings.Repeat(end, n) + "\n}\n"
	}
	switch kind {
	case "paren":
		return in("(", `"h"`, ")")
	case "array":
		return in("[", `"h"`, "]")
	case "object":
		return in("{a=", `"h"`, "}")
	case "template":
		return in(`"${`, `"h"`, `}"`)
	case "minus":
		return in("-", "1", "")
	case "not":
		return in("!", "true", "")
	case "sum":
		return in("1+", "1", "")
	case "choice":
		return in("true?1:", "1", "")
	case "index":
		return in("", "local.a"+strings.Repeat("[0]", n), "")
	case "splat":
		return in("", "local.a"+strings.Repeat("[*]", n), "")
	case "directive":
		return in("", `"`+strings.Repeat("%{if true}", n)+"x"+strings.Repeat("%{endif}", n)+`"`, "")
	case "call":
		return in("upper(", `"h"`, ")")
	case "late":
		return strings.Repeat("# a comment\n", 50_000) + in("[", "1", "]")
	case "block":
		return strings.Repeat("b {\n", n) + strings.Repeat("}\n", n)
	}
	panic(kind)
}

var bombs = []string{"paren", "array", "object", "template", "minus", "not", "sum", "choice", "index", "splat", "directive", "call", "late", "block"}

// cpuTime of this process: unlike the wall clock, it does not depend on what
// else the machine does.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestNesting: depth is refused before the parser sees it, fast and in bounded
// memory; a moderate depth is judged by what it means.
func TestNesting(t *testing.T) {
	for _, kind := range bombs {
		for _, n := range []int{20, 100_000, 1_000_000} {
			t.Run(fmt.Sprintf("%s/%d", kind, n), func(t *testing.T) {
				name := filepath.Join(t.TempDir(), "deep.hcl")
				if err := os.WriteFile(name, []byte(bomb(kind, n)), 0o644); err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				start := cpuTime(t)
				_, ds := load(name, nil, testEnv, testDrivers())
				took := cpuTime(t) - start
				runtime.ReadMemStats(&after)
				deep := 0
				for _, d := range ds {
					if strings.HasPrefix(d.Summary, "nested deeper than 200") {
						deep++
						if d.Pos.Line == 0 {
							t.Error("no line:", d)
						}
					}
				}
				if n < maxNesting {
					if deep > 0 {
						t.Errorf("refused for its depth: %v", ds)
					}
					return
				}
				if deep != 1 || len(ds) != 1 {
					t.Errorf("want one diagnostic about nesting, got %v", ds)
				}
				if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 90 {
					t.Errorf("allocated %d MB", mb)
				}
				if took > time.Second {
					t.Errorf("took %v of CPU", took)
				}
			})
		}
	}
}

// TestLarge: a file over the limit is refused without being parsed, and a large
// flat file is not mistaken for a deep one.
func TestLarge(t *testing.T) {
	big := "# " + strings.Repeat("x", maxFile) + "\n"
	_, ds := loadTexts(t, map[string]string{"big.hcl": big}, nil)
	if len(ds) != 1 || !strings.Contains(ds.String(), "larger than 4 MB") {
		t.Errorf("got %v", ds)
	}
	_, ds = loadTexts(t, map[string]string{"many.hcl": "locals {\n  x = [" + strings.Repeat("1,", 1_000_000) + "]\n}\n"}, nil)
	if len(ds) != 1 || !strings.Contains(ds.String(), "more than 200000 words and signs") {
		t.Errorf("got %v", ds)
	}
	var flat strings.Builder
	flat.WriteString("locals {\n")
	for i := range 3000 {
		fmt.Fprintf(&flat, "  a%d = [-1, -2, { b = \"${upper(\"x\")}${lower(\"y\")}\" }] # note\n", i)
	}
	flat.WriteString("  long = \"" + strings.Repeat("${1}", 500) + "\"\n}\n")
	if _, ds := loadTexts(t, map[string]string{"flat.hcl": flat.String()}, nil); len(ds) != 0 {
		t.Errorf("got %v", ds)
	}
}
