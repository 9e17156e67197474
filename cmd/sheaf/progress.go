package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// progressEvery is how often the line is drawn again.
const progressEvery = 200 * time.Millisecond

// progress counts what has been moved and, on a terminal, draws one line with
// rows, speed and the time left. It may be counted from several goroutines.
type progress struct {
	rows, bytes atomic.Int64
	total       atomic.Int64 // rows to come in all, 0 if unknown
	began       time.Time
	errs        io.Writer
	stop, done  chan struct{}
}

// startProgress draws to errs if a person watches it and quiet is not asked for.
func startProgress(errs io.Writer, quiet bool) *progress {
	p := &progress{began: time.Now(), errs: errs}
	if quiet || !isTerminal(errs) {
		return p
	}
	p.stop, p.done = make(chan struct{}), make(chan struct{})
	go p.draw()
	return p
}

func (p *progress) add(rows, bytes int64) {
	p.rows.Add(rows)
	p.bytes.Add(bytes)
}

// end removes the line and returns the time taken.
func (p *progress) end() time.Duration {
	if p.stop != nil {
		close(p.stop)
		<-p.done
		p.stop = nil
	}
	return time.Since(p.began)
}

func (p *progress) draw() {
	defer close(p.done)
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			fmt.Fprint(p.errs, "\r\x1b[K")
			return
		case <-ticker.C:
			fmt.Fprintf(p.errs, "\r%s\x1b[K", p.line(time.Since(p.began)))
		}
	}
}

// line is the text of one moment.
func (p *progress) line(elapsed time.Duration) string {
	rows, bytes, total := p.rows.Load(), p.bytes.Load(), p.total.Load()
	text := fmt.Sprintf("%s rows  %s", grouped(rows), speed(bytes, elapsed))
	if total > 0 && rows > 0 {
		left := time.Duration(float64(elapsed) * float64(total-rows) / float64(rows))
		text += fmt.Sprintf("  %d%%  ETA %s", min(100, rows*100/total), max(0, left).Round(time.Second))
	}
	return text
}

// speed is bytes a second, in MB of 10⁶ bytes.
func speed(bytes int64, elapsed time.Duration) string {
	return fmt.Sprintf("%.1f MB/s", float64(bytes)/1e6/max(elapsed.Seconds(), 1e-9))
}

// grouped writes a number with a comma every three digits.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	first := (len(digits)-1)%3 + 1
	text := digits[:first]
	for i := first; i < len(digits); i += 3 {
		text += "," + digits[i:i+3]
	}
	return sign + text
}
