package config

// SyntaxOf says what keeps a text from being parsed; name stands for its file in
// that. Whether its blocks make sense is not looked at.
func SyntaxOf(name string, src []byte) Diagnostics {
	l := &loader{findings: newFindings(), src: map[string][]byte{}, lab: &Lab{Sources: map[string][]byte{}}}
	l.parse(name, src[:min(len(src), maxFile)], len(src) <= maxFile)
	return l.sorted()
}
