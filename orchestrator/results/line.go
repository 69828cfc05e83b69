package results

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// A line of journal.jsonl is the record as JSON, one tab, the CRC32C (Castagnoli,
// RFC 3720 appendix B.4) of the JSON bytes as 8 lower-case hex digits, and "\n".
// JSON escapes tabs and line ends inside strings, so the last tab is the mark.

var (
	errForeign = errors.New("not a journal line")
	errSum     = errors.New("checksum does not match")
)

const sumLen = 8

func lineSum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// encodeLine renders a record as a whole line, with its line end.
func encodeLine(r Record) ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("journal: record of kind %q cannot be written as JSON: %w", r.Kind, err)
	}
	return fmt.Appendf(b, "\t%08x\n", lineSum(b)), nil
}

// decodeLine reads a line without its line end.
func decodeLine(line []byte) (Record, error) {
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
	var r Record
	if err := json.Unmarshal(body, &r); err != nil {
		return Record{}, fmt.Errorf("%w: %w", errForeign, err)
	}
	if r.Seq < 1 || r.LaneSeq < 0 || (r.Lane == "") != (r.LaneSeq == 0) {
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
