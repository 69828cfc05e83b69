package results

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// journalFake writes a journal's bytes as a controller, a crash and a repair do.
type journalFake struct {
	t     *rapid.T
	path  string
	id    string
	seq   int
	whole []byte // without what is torn
	torn  []byte // the rest of a line that is only begun in the file
	good  []Record
}

func (j *journalFake) record() ([]byte, Record) {
	j.seq += rapid.IntRange(1, 3).Draw(j.t, "step") // numbers of lines that were lost are missing
	r := Record{Seq: j.seq, Run: j.id, Kind: KindNote, At: time.Unix(int64(j.seq), 0).UTC(), Note: rapid.StringN(0, 40, 200).Draw(j.t, "note")}
	line, err := EncodeLine(r)
	if err != nil {
		j.t.Fatal(err)
	}
	return line, r
}

func (j *journalFake) write(b []byte) {
	f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err == nil {
		_, err = f.Write(b)
	}
	if err != nil {
		j.t.Fatal(err)
	}
	_ = f.Close()
}

// end completes a line that was torn.
func (j *journalFake) end() {
	j.write(j.torn)
	j.torn = nil
}

func (j *journalFake) append() {
	j.end()
	line, r := j.record()
	j.write(line)
	j.whole, j.good = append(j.whole, line...), append(j.good, r)
}

func (j *journalFake) tear() {
	j.end()
	line, r := j.record()
	cut := rapid.IntRange(1, len(line)-1).Draw(j.t, "cut")
	j.write(line[:cut])
	j.torn = line[cut:]
	j.whole, j.good = append(j.whole, line...), append(j.good, r)
}

// damage adds a line that is nobody's, another run's, or that lost a bit.
func (j *journalFake) damage() {
	j.end()
	r := Record{Seq: j.seq + 1000, Run: "another", Kind: KindNote, Note: "x"}
	line, err := EncodeLine(r)
	if err != nil {
		j.t.Fatal(err)
	}
	switch rapid.IntRange(0, 3).Draw(j.t, "damage") {
	case 0:
		line = []byte("not a journal line\n")
	case 1:
		line[len(line)/3] ^= 1
	case 2:
		line = append(make([]byte, 100), '\n')
	}
	j.write(line)
}

// repair puts a journal without damage in the place of the old one.
func (j *journalFake) repair() {
	j.end()
	next := j.path + ".new"
	if err := os.WriteFile(next, j.whole, 0o644); err != nil {
		j.t.Fatal(err)
	}
	if err := os.Rename(next, j.path); err != nil {
		j.t.Fatal(err)
	}
}

// However a journal grows, its follower gives each of its records once, in order,
// as soon as its line is whole.
func TestFollower(t *testing.T) {
	run := newRun(t)
	path := filepath.Join(run.Dir(), journalFile)
	rapid.Check(t, func(t *rapid.T) {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		j := &journalFake{t: t, path: path, id: run.Meta.ID}
		f := run.Follow()
		var got []Record
		look := func() {
			recs, err := f.Next()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, recs...)
			want := j.good
			if j.torn != nil {
				want = want[:len(want)-1]
			}
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Fatal(d)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(*rapid.T) { j.append() },
			"tear":   func(*rapid.T) { j.tear() },
			"damage": func(*rapid.T) { j.damage() },
			"repair": func(*rapid.T) { j.repair() },
			"look":   func(*rapid.T) { look() },
		})
		look()
		look()
	})
}

// What a follower has read it does not read again, and it says when it cannot read.
func TestFollowerReadsOnlyWhatIsNew(t *testing.T) {
	run := newRun(t)
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	f := run.Follow()
	for i := range 3 {
		if _, err := w.Append(t.Context(), Record{Kind: KindNote, Note: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		recs, err := f.Next()
		if err != nil || len(recs) != 1 || recs[0].Note != fmt.Sprint(i) {
			t.Errorf("look %d: %v %+v", i, err, recs)
		}
		if recs, err := f.Next(); err != nil || recs != nil {
			t.Errorf("look %d, nothing new: %v %+v", i, err, recs)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(run.Dir(), journalFile))
	if err != nil || f.at != info.Size() {
		t.Errorf("read %d of %d bytes (%v)", f.at, info.Size(), err)
	}
	if err := os.Remove(filepath.Join(run.Dir(), journalFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Next(); err == nil {
		t.Error("a journal that is gone is no error")
	}
}
