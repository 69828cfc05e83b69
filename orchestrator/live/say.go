package live

import "fmt"

// Say prints a line that is no record.
func (p *Plain) Say(line string) { fmt.Fprintln(p.W, Safe(line)) }

// Say prints a line that is no record above the lanes, where it stays.
func (s *Screen) Say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draw(Safe(line))
}
