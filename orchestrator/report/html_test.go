package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
)

// Pages of 2, 20 and 200 cells are sound HTML, need nothing from outside, can be
// read without seeing them, and stay small.
func TestHTMLOfManyCells(t *testing.T) {
	for n, most := range map[int]int{2: 80 << 10, 20: 300 << 10, 200: 2200 << 10} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := htmlOf(t, cellsRun(t, n))
			if len(b) > most {
				t.Errorf("%d bytes, at most %d", len(b), most)
			}
			checkPlaces(t, checkPage(t, b))
			if got := bytes.Contains(b, []byte("are not drawn")); got != (n == 200) {
				t.Errorf("it says that boots are not drawn: %v", got)
			}
			for _, svg := range []string{`class="strip `, `class="lines"`, `class="forest"`} {
				if !bytes.Contains(b, []byte(svg)) {
					t.Errorf("no %s", svg)
				}
			}
		})
	}
}

func TestHTMLOfEveryVerdict(t *testing.T) {
	b := htmlOfDoc(t, judged())
	root := checkPage(t, b)
	checkPlaces(t, root)
	text := textOf(root)
	for _, want := range []string{"1 did not boot", "1 slower", "1 faster", "1 invalid", "2 inconclusive", "2 no evidence", "1 same", "1 no verdict",
		"This is the sentence of bfs.", "Hard finding: The kernel log has flash errors.", "3 more boots of each kernel", "kernsweep rerun 2026-overnight --target router --kernel wide",
		"bfs is 30 % better", "Order and kernel cannot be told apart", "n/a (did not boot)", "a difference, not a ratio", "CONFIG_HZ: 100 beside 1000",
		"12 events", "0 events", "router, boot 3 (2 trials)", strings.Repeat("ab", 32), "images/a.elf", "+20 % [+15 %, +25 %]; a gain of −16.7 %", "goes on beyond the axis"} {
		if !strings.Contains(text, want) {
			t.Errorf("not on the page: %q", want)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error("NaN or Inf on the page")
	}
	// The worst comes first, what did not change is folded.
	if at := strings.Index(text, "1 did not boot"); at > strings.Index(text, "1 same") {
		t.Error("the worst verdict is not the first")
	}
	for n := range root.Descendants() {
		if n.Data == "details" && strings.HasPrefix(strings.TrimSpace(textOf(n)), "1 same") && attr(n, "open") != nil {
			t.Error("the unchanged ones are open")
		}
	}
}

func TestHTMLOfNothing(t *testing.T) {
	d := judged()
	d.Targets = []Target{{PlannedTarget: results.PlannedTarget{Name: "router"}, Enough: &results.Enough{Blocks: 6, Widest: "iperf.to_target rate", HalfWidth: 0.008, Wanted: 0.01}}}
	d.Workloads = []Workload{{ID: "iperf.to_target", Cells: []Cell{{PlannedCell: results.PlannedCell{Cell: results.Cell{Target: "router", Kernel: "bfs", Workload: "iperf.to_target", Scenario: "default"}},
		Empty: "not run", Findings: []results.Found{{Finding: results.Finding{Rule: "steal", Text: "The host took CPU time away.", Evidence: "3 %", Threshold: "1 %"}, Target: "router", Trials: 4}}}}}}
	text := textOf(checkPage(t, htmlOfDoc(t, d)))
	for _, want := range []string{"router had enough after 6 blocks", "half width of 0.8 %; 1 % was wanted", "The host took CPU time away.", "router (4 trials)", "n/a (not run)"} {
		if !strings.Contains(text, want) {
			t.Errorf("not on the page: %q", want)
		}
	}
	root := checkPage(t, htmlOf(t, newLab(t, "empty").done()))
	for _, want := range []string{"None: nothing was measured.", "No boot and no trial failed.", "n/a (none recorded)"} {
		if !strings.Contains(textOf(root), want) {
			t.Errorf("not on the page: %q", want)
		}
	}
	d.Judgement = nil
	checkPage(t, htmlOfDoc(t, d))
}

// checkPage holds of every page.
func checkPage(t *testing.T, b []byte) *html.Node {
	t.Helper()
	balanced(t, b)
	root, err := html.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	ids, level := map[string]bool{}, 0
	var links []string
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		for _, a := range n.Attr {
			checkAttr(t, n, a)
			switch {
			case a.Key == "id" && ids[a.Val]:
				t.Errorf("id %q twice", a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			case a.Key == "href":
				links = append(links, strings.TrimPrefix(a.Val, "#"))
			}
		}
		checkElement(t, n)
		if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
			if now := int(n.Data[1] - '0'); now > level+1 {
				t.Errorf("heading %s after h%d: %s", n.Data, level, textOf(n))
			} else {
				level = now
			}
		}
	}
	for _, l := range links {
		if !ids[l] {
			t.Errorf("link to #%s leads nowhere", l)
		}
	}
	checkPolicy(t, root)
	return root
}

func checkAttr(t *testing.T, n *html.Node, a html.Attribute) {
	t.Helper()
	switch {
	case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "src", a.Key == "srcset", a.Key == "action", a.Key == "formaction", a.Key == "background":
		t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
	case a.Key == "href" && !strings.HasPrefix(a.Val, "#"):
		t.Errorf("<%s href=%q> leads out of the page", n.Data, a.Val)
	}
}

func checkElement(t *testing.T, n *html.Node) {
	t.Helper()
	has := func(tag string) bool {
		for c := range n.ChildNodes() {
			if c.Data == tag && strings.TrimSpace(textOf(c)) != "" {
				return true
			}
		}
		return false
	}
	switch n.Data {
	case "script", "link", "iframe", "object", "embed", "img", "form", "input", "base", "foreignObject", "image", "audio", "video":
		t.Errorf("<%s> on the page: %v", n.Data, n.Attr)
	case "svg":
		if !has("title") {
			t.Errorf("an svg without a title: %v", n.Attr)
		}
		nested := n.Parent.Namespace == "svg"
		if role := attr(n, "role"); !nested && (role == nil || *role != "img") && attr(n, "aria-hidden") == nil {
			t.Errorf("an svg that is neither an image nor hidden: %v", n.Attr)
		}
	case "table":
		if !has("caption") {
			t.Error("a table without a caption")
		}
		if c, up := attr(n, "class"), attr(n.Parent, "class"); c == nil || *c != "plots" && (up == nil || *up != "scroll") {
			t.Error("a wide table that cannot be scrolled")
		}
	case "th":
		if attr(n, "scope") == nil {
			t.Errorf("<th> without a scope: %s", textOf(n))
		}
	case "html":
		if l := attr(n, "lang"); l == nil || *l != "en" {
			t.Error("no language")
		}
	case "pre":
		if c := attr(n, "class"); (c == nil || *c != "wrap") && attr(n, "tabindex") == nil {
			t.Error("a <pre> that scrolls cannot be reached with the keyboard")
		}
	case "div":
		if c := attr(n, "class"); c != nil && *c == "scroll" && (attr(n, "tabindex") == nil || attr(n, "aria-label") == nil) {
			t.Error("a part that scrolls cannot be reached with the keyboard, or has no name")
		}
	}
}

// checkPolicy: the style sheet is the one that the policy allows.
func checkPolicy(t *testing.T, root *html.Node) {
	t.Helper()
	policy, style := "", ""
	for n := range root.Descendants() {
		if n.Data == "style" {
			style = n.FirstChild.Data
		}
		if e := attr(n, "http-equiv"); e != nil && *e == "Content-Security-Policy" {
			policy = *attr(n, "content")
		}
	}
	sum := sha256.Sum256([]byte(style))
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Errorf("policy %q does not fit the style sheet", policy)
	}
	for _, bad := range []string{"url(", "@import", "<"} {
		if strings.Contains(style, bad) {
			t.Errorf("the style sheet has %q", bad)
		}
	}
}

// balanced checks that every element is closed, in order.
func balanced(t *testing.T, b []byte) {
	t.Helper()
	void := []string{"meta", "br", "hr", "wbr"}
	var open []string
	z := html.NewTokenizer(bytes.NewReader(b))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("not closed: %v", open)
			}
			return
		case html.StartTagToken:
			if name, _ := z.TagName(); !slices.Contains(void, string(name)) {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				t.Fatalf("</%s> closes %v", name, open)
			}
			open = open[:len(open)-1]
		}
	}
}

func attr(n *html.Node, key string) *string {
	for i := range n.Attr {
		if n.Attr[i].Key == key {
			return &n.Attr[i].Val
		}
	}
	return nil
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode && c.Parent.Data != "style" {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// What stands against most comparisons of a pair of kernels is said once, with
// the pair; what stands against one, beside it.
func TestHTMLSaysCommonFindingsOnce(t *testing.T) {
	series := results.Finding{Rule: "different kernel series", Text: "other series"}
	idle := results.Finding{Rule: "CPU not the bottleneck", Text: "time left"}
	claim := func(target, workload string, f ...results.Finding) compare.Comparison {
		return compare.Comparison{Key: compare.Key{Target: target, Workload: workload, Scenario: "default", Kernel: "new", Baseline: "old"},
			Primary: true, Verdict: stats.Inconclusive, Sentence: target + workload, Findings: f, Comparison: stats.Comparison{Change: stats.Num(0.1)}}
	}
	p := page{Doc: &Document{Judgement: &compare.Judgement{Comparisons: []compare.Comparison{
		claim("desk", "a", series, idle), claim("desk", "b", series), claim("router", "a"), claim("router", "b"), claim("router", "c"),
	}}}}
	p.verdicts()
	if len(p.Common) != 1 || p.Common[0] != "desk, new against old: Warning, on 2 of 2 comparisons: other series" {
		t.Errorf("%q", p.Common)
	}
	for _, l := range p.Groups[0].Line {
		want := 0
		if l.Sentence == "deska" {
			want = 1
		}
		if len(l.Findings) != want {
			t.Errorf("%s: %q", l.Sentence, l.Findings)
		}
	}
}
