// The load client: closed loop, or open loop with Poisson arrivals, over TLS and HTTP/1.1
// keep-alive, as an API server calls a webhook. It reads a plan as JSON from standard input and
// writes what it measured as JSON. Latency of the open loop counts from the intended send time.
// With an address, a certificate and its key as words it is an echo: what net/http takes to allow
// each review. Standard library only.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

const patience = 15 * time.Second

type plan struct {
	Address     string
	Path        string
	Certificate string
	Template    string
	RequestUID  string `json:"request_uid"`
	ObjectUID   string `json:"object_uid"`
	Namespace   string
	Suffix      string
	Namespaces  []string
	Connections int
	Rate        float64
	Seconds     float64
	Limit       int
}

// out is what all workers saw.
var out struct {
	sync.Mutex
	Allowed    int       `json:"allowed"`
	Denied     int       `json:"denied"`
	Failed     int       `json:"failed"`
	Seconds    float64   `json:"seconds"`
	ClientCPU  float64   `json:"client_cpu"`
	Latencies  []float64 `json:"latencies"`
	Complaints []string  `json:"complaints,omitempty"`
}

// worker owns one connection. It writes each review over the last one in its message: the marks of
// the template have the length of what replaces them.
type worker struct {
	plan       *plan
	message    []byte
	spots      map[string][]int
	connection *tls.Conn
	reader     *bufio.Reader
}

func newWorker(p *plan, settings *tls.Config) *worker {
	connection, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", p.Address, settings)
	if err != nil {
		panic(err)
	}
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, */*\r\nContent-Length: %d\r\n\r\n", p.Path, p.Address, len(p.Template))
	w := &worker{plan: p, message: []byte(head + p.Template), spots: map[string][]int{}}
	w.connection, w.reader = connection, bufio.NewReaderSize(connection, 16384)
	for _, mark := range []string{p.RequestUID, p.ObjectUID, p.Namespace, p.Suffix} {
		for start := 0; ; start += len(mark) {
			at := bytes.Index(w.message[start:], []byte(mark))
			if at < 0 {
				break
			}
			start += at
			w.spots[mark] = append(w.spots[mark], start)
		}
	}
	return w
}

func uid() string {
	high, low := rand.Uint64(), rand.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", high>>32, high>>16&0xffff, high&0xfff, low>>48&0xfff, low&0xffffffffffff)
}

func (w *worker) write(mark string, text string) {
	for _, at := range w.spots[mark] {
		copy(w.message[at:at+len(mark)], text)
	}
}

func (w *worker) ask(intended time.Time) {
	request := uid()
	w.write(w.plan.RequestUID, request)
	w.write(w.plan.ObjectUID, uid())
	w.write(w.plan.Suffix, request)
	w.write(w.plan.Namespace, w.plan.Namespaces[rand.IntN(len(w.plan.Namespaces))])
	body, err := w.exchange()
	out.Lock()
	defer out.Unlock()
	out.Latencies = append(out.Latencies, float64(time.Since(intended).Nanoseconds())/1e6)
	answered := err == nil && bytes.Contains(body, []byte(request))
	body = bytes.ReplaceAll(body, []byte(`": `), []byte(`":`))
	if answered && bytes.Contains(body, []byte(`"allowed":true`)) {
		out.Allowed++
	} else if answered && bytes.Contains(body, []byte(`"allowed":false`)) {
		out.Denied++
	} else {
		out.Failed++
		out.Complaints = append(out.Complaints, fmt.Sprintf("%v: %.200s", err, body))
	}
}

func (w *worker) exchange() ([]byte, error) {
	w.connection.SetDeadline(time.Now().Add(patience))
	if _, err := w.connection.Write(w.message); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(w.reader, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// arrivals gives each worker the time when its next request is due: at once in a closed loop, at random
// times in an open one, where whoever holds the lock waits for the next arrival.
type arrivals struct {
	sync.Mutex
	plan *plan
	due  time.Time
	end  time.Time
	sent int
}

func (a *arrivals) next() (time.Time, bool) {
	a.Lock()
	defer a.Unlock()
	if !a.due.Before(a.end) || a.plan.Limit > 0 && a.sent >= a.plan.Limit {
		return a.due, false
	}
	a.sent++
	if a.plan.Rate > 0 {
		a.due = a.due.Add(time.Duration(rand.ExpFloat64() / a.plan.Rate * 1e9))
		time.Sleep(time.Until(a.due))
	} else {
		a.due = time.Now()
	}
	return a.due, true
}

func makeLoad(p *plan, workers []*worker) {
	begin := time.Now()
	waiting := &arrivals{plan: p, due: begin, end: begin.Add(time.Duration(p.Seconds * 1e9))}
	var group sync.WaitGroup
	for _, w := range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for due, more := waiting.next(); more; due, more = waiting.next() {
				w.ask(due)
			}
		}()
	}
	group.Wait()
}

func cpu() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}

func echo(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID    string
			Object json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1",
		"kind":       "AdmissionReview",
		"response":   map[string]any{"uid": review.Request.UID, "allowed": true},
	})
}

func main() {
	if len(os.Args) > 3 {
		panic(http.ListenAndServeTLS(os.Args[1], os.Args[2], os.Args[3], http.HandlerFunc(echo)))
	}
	var p plan
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		panic(err)
	}
	settings := &tls.Config{RootCAs: x509.NewCertPool(), NextProtos: []string{"http/1.1"}}
	settings.RootCAs.AppendCertsFromPEM([]byte(p.Certificate))
	workers := make([]*worker, p.Connections)
	for i := range workers {
		workers[i] = newWorker(&p, settings)
	}
	before, begin := cpu(), time.Now()
	makeLoad(&p, workers)
	out.Seconds, out.ClientCPU = time.Since(begin).Seconds(), cpu()-before
	json.NewEncoder(os.Stdout).Encode(&out)
}
