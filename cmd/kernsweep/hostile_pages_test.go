package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
)

// hostilePages follows every link of the page from its front, as far as it goes:
// no page has markup, scripts, addresses or hidden signs of anybody else.
func hostilePages(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	ended := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		ended <- execute(ctx, []string{"serve", "--listen", "127.0.0.1:0"}, strings.NewReader(""), w, &errs, os.LookupEnv)
		w.Close()
	}()
	first, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("serve: %v: %s", err, errs.String())
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // until serve ends
	base, err := url.Parse(strings.TrimSpace(first))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{}}
	todo, seen := []string{"/", "/targets", "/metrics", "/api/runs", "/api/targets", "/api/leases", "/" + url.PathEscape(hostile), "/runs/" + url.PathEscape(hostile)}, map[string]bool{}
	for len(todo) > 0 && len(seen) < 300 {
		u, err := base.Parse(todo[0])
		todo = todo[1:]
		if err != nil || u.Host != base.Host || u.Scheme != "http" {
			t.Errorf("an address of somebody else: %v %v", u, err)
			continue
		}
		u.Fragment = ""
		if seen[u.String()] || strings.Contains(u.Path, "/raw/") || strings.HasSuffix(u.Path, "/stream") || strings.HasSuffix(u.Path, "/events") {
			continue
		}
		seen[u.String()] = true
		todo = append(todo, hostilePage(t, client, u)...)
	}
	client.CloseIdleConnections()
	stop()
	<-ended
	checkInert(t, "serve: standard error", errs.Bytes())
	if len(seen) < 15 {
		t.Errorf("only %d pages", len(seen))
	}
}

// hostilePage checks one page and gives its links.
func hostilePage(t *testing.T, client *http.Client, u *url.URL) (links []string) {
	t.Helper()
	resp, err := client.Get(u.String())
	if err != nil {
		t.Errorf("%s: %v", u, err)
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%s: %v", u, err)
	}
	for key, values := range resp.Header {
		checkInert(t, u.String()+": header "+key, []byte(strings.Join(values, "")))
	}
	kind := resp.Header.Get("Content-Type")
	if !strings.Contains(kind, "html") {
		if !strings.Contains(kind, "javascript") && !strings.Contains(kind, "font") && !strings.Contains(kind, "image") {
			checkInert(t, u.String(), body)
		}
		return nil
	}
	if resp.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("%s: no content security policy", u)
	}
	checkInert(t, u.String(), bytes.ReplaceAll(body, []byte("\n"), []byte(" ")))
	root, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		t.Errorf("%s: %v", u, err)
		return nil
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && (n.Data == "img" || n.Data == "iframe" || n.Data == "script" && n.FirstChild != nil) {
			t.Errorf("%s: <%s>", u, n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"):
				t.Errorf("%s: <%s %s=%s>", u, n.Data, a.Key, a.Val)
			case a.Key == "href" && a.Val != "data:,": // of the icon that there is not
				links = append(links, a.Val)
			}
		}
	}
	return links
}
