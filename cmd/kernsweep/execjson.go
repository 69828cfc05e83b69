package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"unicode/utf8"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/report"
)

// execObject is what exec --json prints of one target. An output that is no UTF-8
// is in the field with base64 in its name.
type execObject struct {
	Name      string  `json:"name"`
	Exit      *int    `json:"exit"` // null: it did not end with a status
	Signal    string  `json:"signal,omitempty"`
	Error     string  `json:"error,omitempty"`
	Stdout    string  `json:"stdout"`
	StdoutRaw []byte  `json:"stdout_base64,omitempty"`
	StdoutCut int64   `json:"stdout_bytes_not_kept,omitempty"`
	Stderr    string  `json:"stderr"`
	StderrRaw []byte  `json:"stderr_base64,omitempty"`
	StderrCut int64   `json:"stderr_bytes_not_kept,omitempty"`
	Seconds   float64 `json:"seconds"`
}

// objects writes a JSON array, of which only one member is in memory.
type objects struct {
	w io.Writer
	n int
}

func newObjects(w io.Writer) *objects { return &objects{w: w} }

func (o *objects) add(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("  ", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	lead := ",\n  "
	if o.n == 0 {
		lead = "[\n  "
	}
	o.n++
	_, err := report.Inert(o.w).Write(append([]byte(lead), bytes.TrimSuffix(b.Bytes(), []byte("\n"))...))
	return err
}

func (o *objects) close() error {
	end := "\n]\n"
	if o.n == 0 {
		end = "[]\n"
	}
	_, err := io.WriteString(o.w, end)
	return err
}

func (o *objects) write(ctx context.Context, r *handed) error {
	x := execObject{Name: r.t.Name, Signal: r.exit.Signal, Seconds: r.took.Seconds(), StdoutCut: r.out.left, StderrCut: r.errs.left}
	switch {
	case r.err != nil && ctx.Err() != nil:
		x.Error = "interrupted"
	case r.err != nil:
		x.Error = live.Safe(r.err.Error())
	case r.exit.NoStatus:
		x.Error = r.exit.String()
	case r.exit.Signal == "":
		x.Exit = &r.exit.Code
	}
	var err error
	if x.Stdout, x.StdoutRaw, err = text(r.out); err == nil {
		x.Stderr, x.StderrRaw, err = text(r.errs)
	}
	if err != nil {
		return err
	}
	return o.add(x)
}

// text is an output as text, or, where it is none, as bytes.
func text(s *spool) (string, []byte, error) {
	b, err := io.ReadAll(s.reader())
	if err != nil || !utf8.Valid(b) {
		return "", b, err
	}
	return string(b), nil, nil
}
