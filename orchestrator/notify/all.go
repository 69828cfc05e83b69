package notify

// All are the drivers by the label of their block.
func All() map[string]func() Driver {
	return map[string]func() Driver{
		"command": func() Driver { return &Command{} },
		"webhook": func() Driver { return &Webhook{} },
		"smtp":    func() Driver { return &SMTP{} },
	}
}
