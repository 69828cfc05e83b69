package results

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary runs itself as the process that is to be killed, or that is
// to meet a full disk.
func TestMain(m *testing.M) {
	switch os.Getenv("JOURNAL_CHILD") {
	case "full":
		exit(childFull(os.Getenv("JOURNAL_RUN")))
	case "fuse":
		exit(childFuse())
	case "race":
		exit(childRace(os.Getenv("JOURNAL_RUN")))
	case "lanes":
		exit(childLanes(os.Getenv("JOURNAL_RUN")))
	case "read":
		exit(childRead(os.Getenv("JOURNAL_RUN")))
	}
	goleak.VerifyTestMain(m)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// childFull appends under a file size limit, which cuts a write short as a full
// disk does; then the limit is raised.
func childFull(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	w, err := openWriter(context.Background(), dir, childOpening())
	if err != nil {
		return err
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: old.Max}); err != nil {
		return err
	}
	rec := Record{Lane: "r1", Kind: KindNote, Note: strings.Repeat("x", 300)}
	for err == nil {
		_, err = w.Append(context.Background(), rec)
	}
	if !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("the append beyond the limit failed with %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	r, err := w.Append(context.Background(), rec)
	if err != nil {
		return fmt.Errorf("after making room: %w", err)
	}
	fmt.Println(r.Seq)
	return w.Close()
}

func childOpening() opening { return opening{owner: "child", now: time.Now, beat: beat} }

// childRead reads a run as somebody who may not write there.
func childRead(dir string) error {
	run, err := Find(filepath.Dir(dir), filepath.Base(dir))
	if err != nil {
		return err
	}
	s, err := run.State()
	if err != nil {
		return err
	}
	_, err = run.OpenWriter("nobody")
	fmt.Printf("%d records, notes %q; writing: %v\n", len(s.Journal.Records), s.Journal.Notes, err)
	return nil
}

// childLanes appends from several lanes at once, numbered, and prints what was
// acknowledged: lane and number.
func childLanes(dir string) error {
	w, err := openWriter(context.Background(), dir, childOpening())
	if err != nil {
		return err
	}
	failed := make(chan error)
	for l := range 4 {
		go func() {
			lane := fmt.Sprintf("r%d", l)
			for {
				r, err := w.Append(context.Background(), Record{Lane: lane, Kind: KindNote, Note: strings.Repeat("x", 100+rand.IntN(5000))})
				if err != nil {
					failed <- err
					return
				}
				fmt.Printf("%s %d %d\n", lane, r.LaneSeq, r.Seq)
			}
		}()
	}
	return <-failed
}
