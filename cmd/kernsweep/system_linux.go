package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFiles is a folder with the descriptors of this process.
const openFiles = "/proc/self/fd"

// dupTo makes descriptor to what from is, also after an exec.
func dupTo(from, to int) error { return unix.Dup3(from, to, 0) }

// holdProcess gives a descriptor that means this process and never another of its
// number; the error is ESRCH when there is none.
func holdProcess(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

// signalHeld sends a signal to the process of such a descriptor.
func signalHeld(fd int, sig syscall.Signal) error { return unix.PidfdSendSignal(fd, sig, nil, 0) }

// could says that this machine suspends when somebody or something asks it to.
func (s sleepless) could() bool {
	states, _ := os.ReadFile(filepath.Join(s.root, "sys/power/state"))
	if len(bytes.TrimSpace(states)) == 0 {
		return false
	}
	_, err := os.Stat(filepath.Join(s.root, "run/systemd/seats")) // logind runs
	return err == nil
}

// inhibitor is the program that keeps the machine awake as long as it lives. It
// answers a line once it does so. what names the reason.
func inhibitor(what string) []string {
	return []string{"systemd-inhibit", "--what=sleep:idle:handle-lid-switch", "--mode=block", "--who=kernsweep", "--why=" + what, "cat"}
}
