package results

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"kernsweep/workloads"
)

// A line of journal.jsonl is the record as JSON, one tab, the CRC32C (Castagnoli,
// RFC 3720 appendix B.4) of the JSON bytes as 8 lower-case hex digits, and "\n".
// JSON escapes tabs and line ends inside strings, so the last tab is the mark.

var (
	errForeign = errors.New("not a journal line")
	errSum     = errors.New("checksum does not match")
)

const (
	sumLen = 8
	maxSeq = 1 << 48 // no run gets there: a number beyond is made up
)

func lineSum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// EncodeLine renders a numbered record as a whole journal line, with its line
// end; for those who make journals out of other logs. Errors: what JSON cannot say.
func EncodeLine(r Record) ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("journal: record of kind %q cannot be written as JSON: %w", r.Kind, err)
	}
	return fmt.Appendf(b, "\t%08x\n", lineSum(b)), nil
}

// fitting encodes a record as far as a reader takes a line: of one that is too
// long the texts are cut, then the values left out, and the verdict kept.
func fitting(r Record) ([]byte, error) {
	r = finite(r)
	line, err := EncodeLine(r)
	if err != nil || len(line) <= maxLine {
		return line, err
	}
	why := fmt.Sprintf("the record had %d bytes, more than the %d of a journal line: ", len(line), maxLine)
	for _, s := range []*string{&r.Note, &r.Reason, &r.Collect} {
		*s = cutText(*s)
	}
	if r.Boot != nil {
		b := *r.Boot
		b.Reason, b.LastLines = cutText(b.Reason), nil
		r.Boot = &b
	}
	if line, err = EncodeLine(r); err != nil || len(line) <= maxLine {
		return line, err
	}
	if r.Parsed != nil {
		r.Parsed, r.Collect = nil, why+"its values are left out; the raw files have them. "+r.Collect
		line, err = EncodeLine(r)
	}
	if err == nil && len(line) > maxLine {
		err = errors.New("journal: " + why + "it cannot be recorded")
	}
	return line, err
}

// cutText keeps the beginning of a text that no person would read to its end.
func cutText(s string) string {
	const most = 64 << 10
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes were cut)", s[:most], len(s)-most)
}

// finite replaces figures that are no finite numbers, which JSON cannot carry,
// by missing ones: a verdict must not be lost for them.
func finite(r Record) Record {
	odd := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	if r.Parsed != nil && slices.ContainsFunc(r.Parsed.Values, func(v workloads.Value) bool { return odd(v.Value) || odd(v.Resolution) }) {
		p := *r.Parsed
		p.Values = slices.Clone(p.Values)
		for i := range p.Values {
			v := &p.Values[i]
			if odd(v.Value) {
				if v.Missing == "" {
					v.Missing = fmt.Sprintf("not a finite number (%v)", v.Value)
				}
				v.Value = 0
			}
			if odd(v.Resolution) {
				v.Resolution = 0
			}
		}
		r.Parsed = &p
	}
	if r.Summary != nil {
		a := *r.Summary
		for _, f := range []struct {
			column string
			v      *float64
		}{{"cs", &a.Switches}, {"in", &a.Interrupts}, {"us", &a.User}, {"sy", &a.System}, {"id", &a.Idle}, {"wa", &a.Wait}, {"st", &a.Steal}, {"seconds", &a.Seconds}} {
			if odd(*f.v) {
				*f.v = 0
				a.Missing = append(slices.Clone(a.Missing), f.column)
			}
		}
		r.Summary = &a
	}
	return r
}

// line decodes a line without its line end.
func (d *decoder) line(line []byte) (Record, error) {
	cut := len(line) - sumLen - 1
	if cut < 2 || line[cut] != '\t' || line[0] != '{' {
		return Record{}, errForeign
	}
	var sum [4]byte
	if _, err := hex.Decode(sum[:], line[cut+1:]); err != nil {
		return Record{}, errForeign
	}
	want := uint32(sum[0])<<24 | uint32(sum[1])<<16 | uint32(sum[2])<<8 | uint32(sum[3])
	body := line[:cut]
	if lineSum(body) != want {
		return Record{}, errSum
	}
	r, err := d.record(body)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w", errForeign, err)
	}
	if r.Seq < 1 || int64(r.Seq) > maxSeq || r.LaneSeq < 0 || r.LaneSeq > r.Seq || (r.Lane == "") != (r.LaneSeq == 0) {
		return Record{}, fmt.Errorf("%w: its sequence numbers make no sense", errForeign)
	}
	return r, nil
}

// stripNUL removes the NUL bytes a power cut or a full disk leaves behind.
func stripNUL(line []byte) ([]byte, int) {
	n := bytes.Count(line, []byte{0})
	if n == 0 {
		return line, 0
	}
	return bytes.ReplaceAll(line, []byte{0}, nil), n
}
