package vmstat

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// absent stands for a missing value in CSV and text; the note has the reason.
const absent = "n/a"

func header() []string {
	h := []string{"mono_ns", "seconds"}
	for c := range columns {
		h = append(h, c.String())
	}
	return append(h, "note")
}

// WriteCSV writes rows with a header line. Values have at most 3 decimals.
func WriteCSV(w io.Writer, rows []Row) error {
	out := csv.NewWriter(w)
	if err := out.Write(header()); err != nil {
		return err
	}
	for _, r := range rows {
		rec := []string{strconv.FormatInt(r.MonoNS, 10), number(r.Seconds)}
		for c := range columns {
			if v, ok := r.Get(c); ok {
				rec = append(rec, number(v))
			} else {
				rec = append(rec, absent)
			}
		}
		if err := out.Write(append(rec, r.Note)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// number prints v with at most 3 decimals.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'f', 3, 64)
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}

// ReadCSV reads what WriteCSV wrote. Columns are found by name, so a file
// without some of them, or with others, can be read too.
func ReadCSV(r io.Reader) ([]Row, error) {
	in := csv.NewReader(r)
	head, err := in.Read()
	if err == io.EOF {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("vmstat.csv: %w", err)
	}
	var rows []Row
	for {
		rec, err := in.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, fmt.Errorf("vmstat.csv: %w", err)
		}
		row, err := fromRecord(head, rec)
		if err != nil {
			line, _ := in.FieldPos(0)
			return rows, fmt.Errorf("vmstat.csv: line %d: %w", line, err)
		}
		rows = append(rows, row)
	}
}

func fromRecord(head, rec []string) (Row, error) {
	var r Row
	for i, name := range head {
		c, known := columnOf(name)
		var err error
		switch {
		case name == "mono_ns":
			r.MonoNS, err = strconv.ParseInt(rec[i], 10, 64)
		case name == "seconds":
			r.Seconds, err = finite(rec[i])
		case name == "note":
			r.Note = rec[i]
		case known && rec[i] != absent:
			var v float64
			if v, err = finite(rec[i]); err == nil {
				r.Set(c, v)
			}
		}
		if err != nil {
			return r, fmt.Errorf("column %s: %w", name, err)
		}
	}
	return r, nil
}
