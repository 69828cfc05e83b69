package main

import "slices"

// otherWords are words that people try, of other tools and of a part of the work,
// with the commands that do it. A name that is merely spelt alike is no help: kill
// is not pull.
func otherWords() []struct {
	do    string
	words []string
} {
	return []struct {
		do    string
		words []string
	}{
		{"kernsweep target add", []string{"add", "init", "new", "register"}},
		{"kernsweep target list", []string{"list", "targets", "devices", "inventory"}},
		{"kernsweep target probe", []string{"probe", "inspect", "facts"}},
		{"kernsweep target doctor", []string{"doctor", "rehearse", "selftest"}},
		{"kernsweep status", []string{"ls", "ps", "runs", "history", "show"}},
		{"kernsweep watch", []string{"top", "tail", "follow", "attach", "monitor", "progress"}},
		{"kernsweep shell", []string{"ssh", "login", "connect", "enter"}},
		{"kernsweep stop", []string{"kill", "abort", "cancel", "end", "quit"}},
		{"kernsweep lane", []string{"pause", "skip", "quarantine", "go-on", "unpause", "lanes"}},
		{"kernsweep rerun", []string{"retry", "again", "repeat", "redo"}},
		{"kernsweep resume", []string{"continue"}},
		{"kernsweep push or kernsweep pull", []string{"cp", "scp", "copy", "sync", "transfer"}},
		{"kernsweep pull", []string{"get", "fetch", "download"}},
		{"kernsweep push", []string{"put", "send", "upload"}},
		{"kernsweep power", []string{"reboot", "reset", "cycle", "on", "off"}},
		{"kernsweep console", []string{"serial", "tty"}},
		{"kernsweep open", []string{"html", "browse", "view"}},
		{"kernsweep serve", []string{"web", "server", "http", "page"}},
		{"kernsweep validate", []string{"check", "lint", "verify"}},
		{"kernsweep plan", []string{"estimate", "dry-run", "preview"}},
		{"kernsweep run", []string{"start", "sweep", "go"}},
		{"kernsweep prune", []string{"rm", "remove", "delete", "clean", "gc"}},
		{"kernsweep compare", []string{"diff"}},
	}
}

// meantBy is the command that a word stands for elsewhere; "" for none.
func meantBy(word string) string {
	for _, o := range otherWords() {
		if slices.Contains(o.words, word) {
			return o.do
		}
	}
	return ""
}

// meantByTarget is meantBy for a word after kernsweep target.
func meantByTarget(word string) string {
	switch word {
	case "rm", "remove", "delete", "edit", "rename", "set":
		return "a target is its block in testbeds.hcl: change it there, and let kernsweep validate look at it"
	case "show", "info", "inspect", "facts", "status":
		return "did you mean kernsweep target probe?"
	case "ls":
		return "did you mean kernsweep target list?"
	case "rehearse", "check", "test":
		return "did you mean kernsweep target doctor?"
	case "new", "register":
		return "did you mean kernsweep target add?"
	}
	return ""
}
