package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// openFiles is a folder with the descriptors of this process.
const openFiles = "/dev/fd"

// dupTo makes descriptor to what from is, also after an exec.
func dupTo(from, to int) error { return unix.Dup2(from, to) }

// holdProcess: nothing here holds a process's number; its start is compared instead.
func holdProcess(int) (int, error) { return -1, syscall.ENOSYS }

// signalHeld is never asked: holdProcess gives no descriptor.
func signalHeld(int, syscall.Signal) error { return syscall.ENOSYS }

// could says that this machine suspends when somebody or something asks it to.
func (s sleepless) could() bool { return true }

// inhibitor is the program that keeps the machine awake as long as it lives
// (caffeinate(8); a lid that is closed suspends all the same).
func inhibitor(string) []string { return []string{"caffeinate", "-ims", "cat"} }
