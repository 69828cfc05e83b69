package orchestrator

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"kernsweep/targets/console"
)

// consoleLog is where the console of a boot goes: to disk, and to those who
// watch it by `kernsweep console`.
type consoleLog struct {
	io.Writer
	recording *console.Recording
	share     *console.Share // nil: nobody can watch
}

// openConsole begins the console log of a new boot. The one before ends: Boot
// stops the old console in any case.
func (s *session) openConsole(note func(string)) (*consoleLog, error) {
	s.closeConsole(note)
	path := filepath.Join(s.dir, "console.log")
	for n := 2; exists(path); n++ { // a resumed boot has one of the controller before
		path = filepath.Join(s.dir, fmt.Sprintf("console-%d.log", n))
	}
	rec, err := console.Record(path, console.Limits{})
	if err != nil {
		return nil, err
	}
	c := &consoleLog{Writer: rec, recording: rec}
	s.lane.console = c
	if s.target.Console == nil {
		return c, nil
	}
	run := s.r.Run
	who := fmt.Sprintf("run %s, boot %d of kernel %s", filepath.Base(run.Dir()), s.number, s.kernel)
	if h, ok := run.HeldBy(); ok {
		who += ", of " + h.String()
	}
	if c.share, err = console.Offer(filepath.Dir(run.Dir()), s.conf.Name, who); err != nil {
		note(err.Error()) // the recording is what counts
	} else {
		c.Writer = io.MultiWriter(rec, c.share)
	}
	return c, nil
}

// closeConsole ends the console of the boot before, and its log.
func (l *lane) closeConsole(note func(string)) {
	l.target.StopConsole()
	c := l.console
	if c == nil {
		return
	}
	l.console = nil
	var err error
	if c.share != nil {
		err = c.share.Close()
	}
	if err = errors.Join(c.recording.Close(), err); err != nil {
		note("the console's log: " + err.Error())
	}
}
