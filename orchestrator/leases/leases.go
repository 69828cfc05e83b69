// Package leases keeps processes of one lab from using the same thing at the
// same time: a target, a peer, whatever `uses` names. A lease is a file in a
// folder that every user of the machine may use; it names its holder, is renewed
// while the holder lives, and can be taken over when the holder is gone.
//
// Every change is made under one short lock of the folder and by renaming a
// whole file into place, so a reader needs no lock and never sees half a lease.
// Time on one machine is CLOCK_BOOTTIME, which no setting of the clock moves.
// What a lease's clock says is never enough to take it from a process that may
// live: the file must also have stayed unchanged while it was watched.
package leases

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"kernsweep/orchestrator/paste"
)

// Holder says who takes leases, for the messages that others get.
type Holder struct {
	Owner   string // login name
	Run     string // name of the run; "" for a command by hand
	RunDir  string // its directory, absolute; "" = none yet
	Command string // the command line in short: "run overnight", "boot box cfs"
}

// Record is one lease as it lies in the folder, or one place in the queue for it.
type Record struct {
	ID      string    `json:"id"` // random, one for each time it is taken
	Owner   string    `json:"owner"`
	Host    string    `json:"host"` // the controller
	PID     int       `json:"pid"`
	Start   string    `json:"start,omitempty"`   // field 22 of /proc/PID/stat
	BootID  string    `json:"boot_id,omitempty"` // of the controller
	PIDs    string    `json:"pid_namespace,omitempty"`
	Run     string    `json:"run,omitempty"`
	RunDir  string    `json:"run_dir,omitempty"`
	Command string    `json:"command,omitempty"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"` // by the controller's wall clock
	// UntilBoot is until by CLOCK_BOOTTIME of the controller, in seconds.
	UntilBoot float64 `json:"until_boottime_s"`

	Key   string `json:"-"` // of the lease; filled by List and in errors
	What  string `json:"what,omitempty"`
	State string `json:"-"` // filled by List: Held, Gone or Stale
}

// States of a record that List gives.
const (
	Held  = "held"
	Gone  = "left by a process that is gone"
	Stale = "not renewed in time"
)

// String names the holder: "alice (process 12 on lab1, run R)".
func (r Record) String() string {
	what := "no run"
	switch {
	case r.Run != "":
		what = "run " + r.Run
	case r.Command != "":
		what = "kernsweep " + r.Command
	}
	return fmt.Sprintf("%s (process %d on %s, %s)", r.Owner, r.PID, r.Host, what)
}

// plain makes words that anybody may have written fit for a terminal.
func (r *Record) plain() {
	const most = 200 // characters
	for _, s := range []*string{&r.Owner, &r.Host, &r.Run, &r.Command, &r.What} {
		n := 0
		*s = strings.Map(func(c rune) rune {
			if n++; n > most {
				return -1
			}
			if !unicode.IsPrint(c) {
				return '?'
			}
			return c
		}, *s)
	}
}

// Want is something to be leased.
type Want struct {
	Key  string // the same for the same thing, whatever its name
	What string // for people: "target box"
}

// HeldError says that somebody else holds, or waits for, what was wanted.
type HeldError struct {
	What   string
	Holder Record
	Queued bool // it is free, but the holder was here before us and waits for it
}

func (e *HeldError) Error() string {
	if e.Queued {
		return fmt.Sprintf("%s is free, but %s waits for it since %s: wait behind it with --wait",
			e.What, e.Holder, stamp(e.Holder.Since))
	}
	text := fmt.Sprintf("%s is held by %s since %s until %s (renewed while it lives): wait with --wait, or have %s end it",
		e.What, e.Holder, stamp(e.Holder.Since), stamp(e.Holder.Until), e.Holder.Owner)
	if e.Holder.RunDir != "" {
		text += ": kernsweep stop " + paste.Word(e.Holder.RunDir)
	}
	return text
}

// LostError says that a lease of ours is somebody else's now.
type LostError struct {
	What string
	By   Record
	At   time.Time // when it was noticed
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%s: its lease was taken over by %s at %s, because this process had not renewed it in time (was it stopped?)",
		e.What, e.By, stamp(e.By.Since))
}

// Takeover is a lease that was taken from a holder that was gone.
type Takeover struct {
	What string
	From Record // zero when the file was unreadable
	Why  string
}

func (t Takeover) String() string {
	if t.From.ID == "" {
		return fmt.Sprintf("%s: its lease was taken over: %s", t.What, t.Why)
	}
	return fmt.Sprintf("%s: its lease was taken over from %s, who had it since %s: %s", t.What, t.From, stamp(t.From.Since), t.Why)
}

// stamp is a time as people of this machine read it.
func stamp(t time.Time) string { return t.Local().Format(time.RFC3339) }

// fileOf is the name of a key's file: readable, and of bounded length.
func fileOf(key string) string {
	const most = 60 // bytes of the readable part
	sum := sha256.Sum256([]byte(key))
	name := url.PathEscape(key)
	if len(name) > most {
		name = name[:most]
	}
	return name + "-" + hex.EncodeToString(sum[:8]) + leaseExt
}

const leaseExt = ".lease"
