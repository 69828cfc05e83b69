package tui

import (
	tea "charm.land/bubbletea/v2"
)

// key takes a key. What it does depends on what is shown; a question is answered
// first.
func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	k := msg.String()
	if p := m.pager(); p != nil && p.typing {
		p.typed(k, msg.Text)
		return nil
	}
	if m.question != nil {
		return m.answer(k)
	}
	if !m.asking {
		m.said = ""
	}
	switch k {
	case "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+l":
		return tea.ClearScreen
	case "?", "f1":
		m.openHelp()
		return nil
	}
	if m.mode != showLanes {
		m.pagerKey(k)
		return nil
	}
	return m.lanesKey(k)
}

// pager is the one that is shown, nil: none.
func (m *model) pager() *pager {
	switch m.mode {
	case showConsole:
		return &m.console.pager
	case showLog:
		return &m.log
	case showHelp:
		return &m.help
	}
	return nil
}

func (m *model) openHelp() {
	if m.mode == showHelp {
		return
	}
	m.back, m.mode = m.mode, showHelp
	m.help = pager{found: -1}
	m.help.add(helpLines()...)
}

// pagerKey is a key while text is shown.
func (m *model) pagerKey(k string) {
	p := m.pager()
	switch k {
	case "esc", "q":
		if p.search != "" && k == "esc" {
			p.search = ""
			return
		}
		m.mode, m.back = m.back, showLanes
		if m.mode != showConsole {
			m.console = nil
		}
	case "a":
		if m.mode == showLog {
			m.allLanes = !m.allLanes
			m.newLog()
		}
	case "tab", "right":
		m.turn(1)
	case "shift+tab", "left":
		m.turn(-1)
	default:
		p.key(k)
	}
}

// turn shows the same of the next lane.
func (m *model) turn(by int) {
	if m.mode == showHelp {
		return
	}
	if n := len(m.view.Lanes); n > 0 {
		m.selectRow((m.row() + by + n) % n)
	}
	if m.mode == showConsole {
		m.openConsole()
	}
}

// lanesKey is a key while the lanes are shown.
func (m *model) lanesKey(k string) tea.Cmd {
	page := max(1, m.rows()-1)
	switch k {
	case "q":
		return tea.Quit
	case "up", "k":
		m.selectRow(m.row() - 1)
	case "down", "j":
		m.selectRow(m.row() + 1)
	case "pgup":
		m.selectRow(m.row() - page)
	case "pgdown", "space":
		m.selectRow(m.row() + page)
	case "home", "g":
		m.selectRow(0)
	case "end", "G":
		m.selectRow(len(m.view.Lanes) - 1)
	case "enter", "c":
		m.openConsole()
	case "l":
		m.mode = showLog
		m.log.follow = true
	case "a":
		m.mode, m.allLanes = showLog, true
		m.newLog()
	default:
		m.steer(k)
	}
	return nil
}

// selectRow selects a lane, or the nearest there is.
func (m *model) selectRow(row int) {
	n := len(m.view.Lanes)
	if n == 0 {
		return
	}
	name := m.view.Lanes[min(max(row, 0), n-1)].Name
	if name != m.lane {
		m.lane = name
		m.newLog()
	}
}

func helpLines() []string {
	return []string{
		"up down k j       select a lane; PgUp PgDn Home End go further",
		"Enter c           the lane's console, as the controller records it",
		"l                 the lane's log; a: that of all lanes",
		"s                 skip the trial that runs",
		"S                 skip the lane's kernel: its boot ends, the rest of it is left out",
		"p                 pause the lane, or let it go on",
		"Q                 quarantine the lane's target: it is given up for this run",
		"x                 stop the run in good order; it can be resumed",
		"q Ctrl-C          leave; the run goes on",
		"Ctrl-Z            back to the shell; fg comes back",
		"",
		"s S p Q x ask first: y does it, any other key does not.",
		"",
		"In the console and the log: up down PgUp PgDn Home scroll, End or f follows,",
		"/ searches, n and N find the next one above and below, Tab shows the next lane,",
		"q or Esc goes back.",
		"",
		"Outcomes: ok, F failed, B boot-failed, L lost, I invalid, X interrupted,",
		"H skipped by hand, S skipped, - n/a. \"in\" is how long the lane is at this step,",
		"\"left\" is estimated.",
		"",
		"Times of the log are this terminal's time zone. Nothing here reaches a target:",
		"what is shown is what the run's controller has recorded.",
	}
}
