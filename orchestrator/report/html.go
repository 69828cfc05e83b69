package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"
	"unicode/utf8"

	"kernsweep/orchestrator/report/svg"
	"kernsweep/orchestrator/stats"
)

//go:embed html
var htmlFiles embed.FS

// page is what the template shows.
type page struct {
	Doc    *Document
	Style  template.CSS
	Policy string // Content-Security-Policy
	Shapes template.HTML

	About     []pageFact
	Alarms    []string
	Counts    []verdictCount
	Groups    []verdictGroup
	NoVerdict string   // why there is none
	Common    []string // findings against most of the comparisons
	Forest    *forest  // nil: nothing to compare
	Workloads []workloadPart
	Failures  []failurePart
	Validity  validityPart
	History   historyPart
	Manifest  manifestPart
	Notes     []notePart
	Words     []pageWord
}

// pageFact is a name and what it is.
type pageFact struct{ Name, Text string }

// writeHTML writes one page that needs nothing else: no network, no script.
func writeHTML(w io.Writer, src *source, _ Options) error {
	style, err := htmlFiles.ReadFile("html/style.css")
	if err != nil {
		return err
	}
	t, err := template.New("").Funcs(htmlFuncs()).ParseFS(htmlFiles, "html/*.tmpl")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "page.tmpl", newPage(src, string(style))); err != nil {
		return err
	}
	return writeVisible(w, b.Bytes())
}

func newPage(src *source, style string) *page {
	d := src.doc
	sum := sha256.Sum256([]byte(style))
	p := &page{Doc: d, Style: template.CSS(style), Shapes: template.HTML(svg.Shapes()),
		// Nothing may be loaded or run; the one style sheet is known by its hash.
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; form-action 'none'"}
	p.about()
	p.verdicts()
	p.Forest = newForest(d)
	k := newKernelClasses(d)
	p.Workloads = workloadParts(src, k)
	p.Failures = failureParts(d)
	p.Validity = newValidity(d)
	p.History = newHistory(d)
	p.Manifest = newManifest(d)
	p.Notes = noteParts(d)
	p.Words = glossary()
	return p
}

// Remarks are the judgement's notes about all comparisons.
func (p *page) Remarks() []string {
	if p.Doc.Judgement == nil {
		return nil
	}
	return p.Doc.Judgement.Notes
}

func htmlFuncs() template.FuncMap {
	return template.FuncMap{
		"join":          strings.Join,
		"figureHead":    figureHead,
		"figureColumns": func() int { return len(figureHead()) + 3 },
		"figureRest":    func() int { return len(figureHead()) + 2 },
		"activityHead":  activityHead,
		"overall":       overallText,
		"several":       several,
	}
}

// writeVisible writes the page with every character that could hide or turn text
// as a visible escape, wherever in it untrusted text stands: markup has none.
func writeVisible(w io.Writer, page []byte) error {
	for len(page) > 0 {
		n := 0
		for n < len(page) {
			r, size := utf8.DecodeRune(page[n:])
			if r != '\n' && (hidden(r) || r == utf8.RuneError && size == 1) {
				break
			}
			n += size
		}
		if _, err := w.Write(page[:n]); err != nil {
			return err
		}
		if page = page[n:]; len(page) == 0 {
			return nil
		}
		_, size := utf8.DecodeRune(page)
		if _, err := io.WriteString(w, clean(string(page[:size]))); err != nil {
			return err
		}
		page = page[size:]
	}
	return nil
}

// figureText prints a figure of a metric, short for huge and tiny ones.
func figureText(v float64) string { return svg.Number(v, 0) }

// numOr prints a number or why there is none.
func numOr(n stats.Number) string {
	if !n.OK() {
		return "n/a (" + n.Missing + ")"
	}
	return figureText(n.Value)
}

// ends prints two ends, or why there are none.
func ends(low, high stats.Number) string {
	switch {
	case !low.OK():
		return "n/a (" + low.Missing + ")"
	case !high.OK():
		return "n/a (" + high.Missing + ")"
	}
	return figureText(low.Value) + "\u00a0to\u00a0" + figureText(high.Value)
}
