package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestHistoricFigures: every figure that was published of the five historic
// comparisons is in the report of its import.
func TestHistoricFigures(t *testing.T) {
	runs := t.TempDir()
	call := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if status := execute(t.Context(), append([]string{"--runs", runs}, args...), strings.NewReader(""), &out, &errs, os.LookupEnv); status != 0 {
			t.Fatalf("%v: status %d, %s", args, status, errs.String())
		}
		return strings.TrimSpace(out.String())
	}
	t.Chdir(filepath.Join("..", "..", "examples", "historic"))
	for _, c := range []struct {
		imports []string
		want    string
	}{
		{[]string{"iperf", "CFS=000/cfs.txt", "BFS=000/bfs.txt"},
			`27.4 MBytes  23.0 Mbits/sec|27.3 MBytes  22.9 Mbits/sec|38.2 MBytes  32.0 Mbits/sec|38.1 MBytes  31.9 Mbits/sec|+39.2 %|inconclusive`},
		{[]string{"iperf", "CFS=001/cfs.txt", "BFS=001/bfs.txt"}, `107 MBytes  15.0 Mbits/sec|119 MBytes  16.6 Mbits/sec|+10.7 %|inconclusive`},
		{[]string{"vmstat", "--kernel", "K", "--first-row", "keep", "001/vmstat-wl500gpv2.txt"}, `266.8|4.8|33.8|66.2|15892`},
		{[]string{"table", "--workload", "crunch.ltm", "002/crunch.tsv"}, crunchPairs(t) + `|30965.67/31163|21693.12/29326|20396.36/28323|21427.77/21523|20513.72/30217|` +
			`20419.74/29526|21105.58/21183|20475.03/26137|20347.37/28593|19966.28/20000|20671.13/29456|20628.90/29072|20598.50/20661|20559.85/28746|20339.80/28812|` +
			`20308.73/20381|20527.28/27789|na [|1.4274|no duration`},
		{[]string{"kernbench", "003/kernbench.log"}, kernbenchLines(t) + `|Context Switches 10099.2 (|Context Switches 8659.2 (|Context Switches 20680.7 (|Context Switches 14554.4 (|separate`},
		{[]string{"table", "--workload", "latency.compile", "--did-not-boot", "BFS=hard hang right after disk detection on two boxes", "004/latency.tsv"},
			`951   462  267|983   484  308|-jX (-j64)|-x2 (-j128)|100|did not boot|hard hang right after disk detection on two boxes|sd/mean = 0.578`},
	} {
		dir := call(append([]string{"import"}, c.imports...)...)
		report := call("report", filepath.Base(dir))
		for want := range strings.SplitSeq(c.want, "|") {
			if !strings.Contains(report, want) && !strings.Contains(strings.Join(strings.Fields(report), " "), want) {
				t.Errorf("%v: the report lacks %q", c.imports, want)
			}
		}
	}
}

// crunchPairs are the user/wall pairs of the table.
func crunchPairs(t *testing.T) string {
	b, err := os.ReadFile("002/crunch.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if f[0] != "kernel" && f[4] != "na" {
			pairs = append(pairs, f[4]+"/"+f[5])
		}
	}
	if len(pairs) != 65 {
		t.Fatalf("%d pairs, 65 were published beside 17 sums", len(pairs))
	}
	return strings.Join(pairs, "|")
}

// kernbenchLines are the lines of figures of the log.
func kernbenchLines(t *testing.T) string {
	b, err := os.ReadFile("003/kernbench.log")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); strings.HasSuffix(line, ")") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 48 {
		t.Fatalf("%d lines of figures, not 48", len(lines))
	}
	return strings.Join(lines, "|")
}
