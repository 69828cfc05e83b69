package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// writeJSON prints the document as json.MarshalIndent would, but a trial at a
// time: the text of a large run is many times what the document takes.
func writeJSON(w io.Writer, src *source, _ Options) error {
	out := bufio.NewWriterSize(w, 64<<10)
	doc := *src.doc
	workloads := doc.Workloads
	trial := newIndenter(6)
	doc.Workloads = []Workload{}
	err := around(out, doc, "workloads", 1, len(workloads), func(i int) error {
		wl := workloads[i]
		cells := wl.Cells
		wl.Cells = []Cell{}
		return around(out, wl, "cells", 3, len(cells), func(i int) error {
			c := cells[i]
			trials := c.Trials
			c.Trials = []Trial{}
			return around(out, c, "trials", 5, len(trials), func(i int) error {
				b, err := trial.text(&trials[i])
				if err == nil {
					_, err = out.Write(b)
				}
				return err
			})
		})
	})
	if err != nil {
		return err
	}
	if err := out.WriteByte('\n'); err != nil {
		return err
	}
	return out.Flush()
}

// around writes an object whose list field was emptied, and each of the list's n
// items where it stood. Depth is that of the object's fields.
func around(out *bufio.Writer, object any, field string, depth, n int, item func(int) error) error {
	b, err := newIndenter(depth - 1).text(object)
	if err != nil {
		return err
	}
	inner := "\n" + strings.Repeat("  ", depth)
	hole := inner + `"` + field + `": []` // no text holds a line end, and no deeper field so few spaces
	before, after, ok := bytes.Cut(b, []byte(hole))
	if !ok {
		return fmt.Errorf("json: no empty list %q in the document", field)
	}
	if n == 0 {
		_, err := out.Write(b)
		return err
	}
	if _, err := fmt.Fprintf(out, "%s%s\"%s\": [", before, inner, field); err != nil {
		return err
	}
	for i := range n {
		comma := ","
		if i == 0 {
			comma = ""
		}
		if _, err := out.WriteString(comma + inner + "  "); err != nil {
			return err
		}
		if err := item(i); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "%s]%s", inner, after)
	return err
}

// indenter renders values whose lines but the first begin at a depth.
type indenter struct {
	b   bytes.Buffer
	enc *json.Encoder
}

func newIndenter(depth int) *indenter {
	x := &indenter{}
	x.enc = json.NewEncoder(&x.b)
	x.enc.SetEscapeHTML(false)
	x.enc.SetIndent(strings.Repeat("  ", depth), "  ")
	return x
}

// text is v in JSON, good until the next call.
func (x *indenter) text(v any) ([]byte, error) {
	x.b.Reset()
	if err := x.enc.Encode(v); err != nil {
		return nil, err
	}
	return escaped(bytes.TrimRight(x.b.Bytes(), "\n")), nil
}
