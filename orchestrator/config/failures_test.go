package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStagesAreComplete: what the console and the probe call a failed boot can be
// named in a failures block.
func TestStagesAreComplete(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../targets/signs.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		v, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(v.Names[0].Name, "Stage") {
			return true
		}
		word, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil || !contains(stages(), word) {
			t.Errorf("%s = %q cannot be named", v.Names[0].Name, word)
		}
		n++
		return true
	})
	if n++; n != len(stages()) { // and Timeout
		t.Errorf("%d stages exist, %d can be named", n, len(stages()))
	}
}

func TestFailuresOfATarget(t *testing.T) {
	lab, ds := loadTexts(t, map[string]string{"lab.hcl": `
class "flaky" {
  quarantine = 5
  failures {
    retries        = 3
    infrastructure = ["hang", "machine ended"]

    kernel_complaint = "fail"
  }
}
target "plain" { host = "a" }
target "router" {
  class = class.flaky
  host  = "b"
  failures { backoff = "10m" }
}
`}, nil)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	want := Failures{Retries: 1, Backoff: 5 * time.Second, BackoffMax: 5 * time.Minute, KernelComplaint: ComplaintWarns}
	if d := cmp.Diff(want, lab.Target("plain").Failures); d != "" {
		t.Error("without a block:", d)
	}
	r := lab.Target("router")
	want = Failures{Retries: 3, Backoff: 10 * time.Minute, BackoffMax: 10 * time.Minute, Infrastructure: []string{"hang", "machine ended"},
		KernelComplaint: ComplaintFails}
	if d := cmp.Diff(want, r.Failures); d != "" || r.Quarantine != 5 {
		t.Error("inherited:", d, r.Quarantine)
	}
	if !r.Failures.Excuses("hang") || r.Failures.Excuses("panic") {
		t.Error("a hang is to be excused here, a panic is not")
	}
}
