package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"
	"text/template"
	"time"
)

// message is an event in a server's own form.
type message struct {
	body    string
	headers map[string]string
}

const bodyMost = 256 << 10 // bytes of an own template's output

// message gives the event the form that the block asks for.
func (w *Webhook) message(e Event) (message, error) {
	if w.Body != "" {
		return w.own(e)
	}
	m := message{headers: map[string]string{"Content-Type": "application/json"}}
	if w.Template == "ntfy" {
		m.headers = map[string]string{"Content-Type": "text/plain; charset=utf-8", "Title": mime.QEncoding.Encode("utf-8", e.Subject), "Tags": "computer"}
		if e.Kind == Quarantine {
			m.headers["Priority"] = "high"
		}
		m.body = short(e.Text, 3500) // 4096 bytes at most
		return m, nil
	}
	forms := forms()
	name := w.Template
	if name == "" {
		name = "json"
	}
	form := forms[name]
	if form == nil {
		return m, fmt.Errorf("template: there is no %q; there are %s, ntfy", name, strings.Join(slices.Sorted(maps.Keys(forms)), ", "))
	}
	raw, err := json.Marshal(form(e))
	m.body = string(raw)
	return m, err
}

// forms are the messages that chat services take at the address of an incoming
// webhook, by their own descriptions.
func forms() map[string]func(Event) any {
	type object = map[string]any
	plain := func(most int) func(Event) any {
		return func(e Event) any { return object{"text": chat(e, most)} }
	}
	return map[string]func(Event) any{
		"json": func(e Event) any { return e },
		"slack": func(e Event) any {
			// Three characters are markup there; the block is shown as it is.
			return object{"text": strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(chat(e, 3500))}
		},
		"mattermost": plain(4000),
		"rocketchat": plain(4000),
		"googlechat": plain(3800),
		"discord": func(e Event) any {
			return object{"content": chat(e, 1900), "allowed_mentions": object{"parse": []string{}}}
		},
		"gotify": func(e Event) any {
			priority := 5
			if e.Kind == Quarantine {
				priority = 8
			}
			return object{"title": e.Subject, "message": short(e.Text, 4000), "priority": priority}
		},
		"teams": func(e Event) any {
			card := object{"type": "AdaptiveCard", "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "version": "1.4",
				"body": []object{
					{"type": "TextBlock", "text": mild(e.Subject), "weight": "bolder", "wrap": true},
					{"type": "TextBlock", "text": strings.ReplaceAll(mild(short(e.Text, 4000)), "\n", "\n\n"), "wrap": true, "fontType": "monospace"},
				}}
			return object{"type": "message", "attachments": []object{{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}}
		},
	}
}

// chat is an event as a line and a block that is shown as it is: what a device
// said must neither be markup nor call anybody.
func chat(e Event, most int) string {
	return mild(e.Subject) + "\n```\n" + strings.ReplaceAll(short(e.Text, most), "```", "'''") + "\n```"
}

// mild keeps a line from calling people (@channel).
func mild(s string) string { return strings.ReplaceAll(s, "@", "@\u200b") }

// short cuts text to n bytes at a line end where there is one.
func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const more = "\n… more in the report"
	s = strings.ToValidUTF8(s[:n-len(more)], "")
	if i := strings.LastIndexByte(s, '\n'); i > n/2 {
		s = s[:i]
	}
	return s + more
}

// own fills in the block's own template.
func (w *Webhook) own(e Event) (message, error) {
	t, err := template.New("body").Option("missingkey=error").Funcs(template.FuncMap{"json": func(v any) (string, error) {
		raw, err := json.Marshal(v)
		return string(raw), err
	}}).Parse(w.Body)
	if err != nil {
		return message{}, fmt.Errorf("body: %w", err)
	}
	b := &limited{left: bodyMost}
	if err := t.Execute(b, e); err != nil {
		return message{}, fmt.Errorf("body: %w", err)
	}
	kind := w.ContentType
	if kind == "" {
		kind = "application/json"
	}
	if strings.Contains(kind, "json") && !json.Valid([]byte(b.String())) {
		return message{}, errors.New("body does not give JSON: write {{json .Text}} where text is put in, without quotes of its own (or set content_type)")
	}
	return message{b.String(), map[string]string{"Content-Type": kind}}, nil
}

// limited is a text that may not grow without end.
type limited struct {
	strings.Builder
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, fmt.Errorf("it gives more than %d bytes", bodyMost)
	}
	return l.Builder.Write(p)
}

// sample is an event with everything in it that a template may meet.
func sample() Event {
	status := 3
	return Event{ID: "sample", Kind: Quarantine, At: time.Unix(0, 0).UTC(), Sweep: "overnight", Run: "20261130T220000Z-overnight-7f3a", Dir: "runs/x",
		Controller: "lab", Target: "t\"1", Kernel: "k", Cause: "<c> & \"d\"\n\\", Outcomes: map[string]int{"ok": 1}, ExitStatus: &status,
		Subject: "kernsweep \"overnight\"", Text: "line 1\nline \"2\"", Next: "kernsweep resume latest"}
}
