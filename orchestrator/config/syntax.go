package config

// Syntax reads one file and says what keeps it from being parsed. Whether its
// blocks make sense is not looked at.
func Syntax(path string) Diagnostics {
	l := &loader{findings: newFindings(), src: map[string][]byte{}, lab: &Lab{Sources: map[string][]byte{}}}
	l.read(path)
	return l.sorted()
}
