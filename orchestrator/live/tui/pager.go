package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

const maxLines = 5000 // that a pager keeps

// pager is text that is longer than the screen: lines that are wrapped, a place
// in them, and a search.
type pager struct {
	lines   []string // inert
	tail    string   // a line that is not whole yet
	wrapped []string
	width   int // that wrapped is of
	height  int // of the last drawing
	top     int
	follow  bool

	typing bool   // a search is being typed
	search string // "" = none
	found  int    // line of wrapped, -1: none
}

// add appends whole lines.
func (p *pager) add(lines ...string) {
	p.lines = append(p.lines, lines...)
	if over := len(p.lines) - maxLines; over > 0 {
		p.lines = slices.Delete(p.lines, 0, over+maxLines/10)
		before := len(p.wrapped)
		p.rewrap(p.width)
		p.top = max(0, p.top-max(0, before-len(p.wrapped)))
		return
	}
	for _, l := range lines {
		p.wrapped = append(p.wrapped, wrap(l, p.width)...)
	}
}

func (p *pager) rewrap(width int) {
	p.width, p.wrapped, p.found = width, nil, -1
	for _, l := range p.lines {
		p.wrapped = append(p.wrapped, wrap(l, width)...)
	}
}

// wrap cuts a line into pieces of at most width columns.
func wrap(line string, width int) []string {
	if width <= 0 || len(line) <= width {
		return []string{line}
	}
	return strings.Split(ansi.HardwrapWc(line, width, true), "\n")
}

// draw gives the lines that are seen.
func (p *pager) draw(width, height int) []string {
	if width != p.width {
		p.rewrap(width)
	}
	p.height = height
	all := p.wrapped
	if p.tail != "" {
		all = append(all[:len(all):len(all)], wrap(p.tail, width)...)
	}
	p.place(len(all))
	out := slices.Clone(all[p.top:min(len(all), p.top+height)])
	if i := p.found - p.top; p.search != "" && i >= 0 && i < len(out) {
		out[i] = ansi.NewStyle().Reverse(true).Styled(out[i])
	}
	return out
}

// place keeps the top within the text.
func (p *pager) place(total int) {
	bottom := max(0, total-p.height)
	if p.follow {
		p.top = bottom
	}
	p.top = min(max(p.top, 0), bottom)
}

// scroll moves by lines; at the end it follows again.
func (p *pager) scroll(by int) {
	total := len(p.wrapped)
	if p.tail != "" {
		total++
	}
	p.follow = false
	p.top += by
	p.place(total)
	p.follow = by > 0 && p.top+p.height >= total
}

// key moves; ok is false for a key that is none of the pager's.
func (p *pager) key(k string) (ok bool) {
	page := max(1, p.height-1)
	switch k {
	case "up", "k":
		p.scroll(-1)
	case "down", "j":
		p.scroll(1)
	case "pgup", "b", "ctrl+b":
		p.scroll(-page)
	case "pgdown", "space", "ctrl+f":
		p.scroll(page)
	case "home", "g":
		p.scroll(-len(p.wrapped) - 1)
	case "end", "G", "f":
		p.follow = true
	case "/":
		p.typing, p.search, p.found = true, "", -1
	case "n":
		p.find(-1)
	case "N":
		p.find(1)
	default:
		return false
	}
	return true
}

// typed takes a key of a search that is typed: enter looks upwards from the end.
func (p *pager) typed(k, text string) {
	switch {
	case k == "enter":
		p.typing, p.found = false, min(len(p.wrapped), p.top+p.height)
		p.find(-1)
	case k == "esc" || k == "ctrl+c":
		p.typing, p.search = false, ""
	case k == "backspace" && p.search != "":
		r := []rune(p.search)
		p.search = string(r[:len(r)-1])
	case k != "backspace" && len(p.search) < 100:
		p.search += text
	}
}

// find goes to the next line that has the search, up or down.
func (p *pager) find(step int) {
	if p.search == "" {
		return
	}
	want := strings.ToLower(p.search)
	for i := p.found + step; i >= 0 && i < len(p.wrapped); i += step {
		if strings.Contains(strings.ToLower(p.wrapped[i]), want) {
			p.found, p.follow = i, false
			p.top = i - p.height/2
			p.place(len(p.wrapped))
			return
		}
	}
}
