// The load client: closed loop, or open loop with Poisson arrivals, over TLS and HTTP/1.1
// keep-alive, as an API server calls a webhook. It reads a plan as JSON from standard input and
// writes what it measured as JSON. Latency of the open loop counts from the intended send time.
// Standard library only.
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"sort"
	"sync"
	"syscall"
	"time"
)

type plan struct {
	Address     string   `json:"address"`
	Path        string   `json:"path"`
	Certificate string   `json:"certificate"`
	Template    string   `json:"template"`
	RequestUID  string   `json:"request_uid"`
	ObjectUID   string   `json:"object_uid"`
	Namespace   string   `json:"namespace"`
	Suffix      string   `json:"suffix"`
	Namespaces  []string `json:"namespaces"`
	Connections int      `json:"connections"`
	Rate        float64  `json:"rate"`
	Seconds     float64  `json:"seconds"`
	Limit       int      `json:"limit"`
}

type result struct {
	Sent       int                `json:"sent"`
	Answered   int                `json:"answered"`
	Allowed    int                `json:"allowed"`
	Denied     int                `json:"denied"`
	Wrong      int                `json:"wrong"`
	Failed     int                `json:"failed"`
	Seconds    float64            `json:"seconds"`
	Latency    map[string]float64 `json:"latency_ms"`
	ClientCPU  float64            `json:"client_cpu"`
	Complaints []string           `json:"complaints"`
}

// worker owns one connection; it dials again after a failure.
type worker struct {
	plan       *plan
	roots      *x509.CertPool
	random     *mrand.Rand
	message    []byte
	spots      map[string][]int
	connection *tls.Conn
	reader     *bufio.Reader
	out        result
	latencies  []float64
}

func positions(message []byte, mark string) []int {
	var found []int
	for start := 0; ; {
		at := bytes.Index(message[start:], []byte(mark))
		if at < 0 {
			return found
		}
		found = append(found, start+at)
		start += at + len(mark)
	}
}

func newWorker(p *plan, roots *x509.CertPool) *worker {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, */*\r\nContent-Length: %d\r\n\r\n", p.Path, p.Address, len(p.Template))
	var seed [32]byte
	if _, err := rand.Read(seed[:]); err != nil {
		panic(err)
	}
	w := &worker{plan: p, roots: roots, random: mrand.New(mrand.NewChaCha8(seed))}
	w.message = []byte(head + p.Template)
	w.spots = map[string][]int{}
	for _, mark := range []string{p.RequestUID, p.ObjectUID, p.Namespace, p.Suffix} {
		w.spots[mark] = positions(w.message, mark)
	}
	return w
}

func (w *worker) uid() []byte {
	var raw [16]byte
	var text [36]byte
	high, low := w.random.Uint64(), w.random.Uint64()
	for i := 0; i < 8; i++ {
		raw[i], raw[8+i] = byte(high>>(8*i)), byte(low>>(8*i))
	}
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	hex.Encode(text[:8], raw[:4])
	hex.Encode(text[9:13], raw[4:6])
	hex.Encode(text[14:18], raw[6:8])
	hex.Encode(text[19:23], raw[8:10])
	hex.Encode(text[24:], raw[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return text[:]
}

func (w *worker) write(mark string, text []byte) {
	for _, at := range w.spots[mark] {
		copy(w.message[at:at+len(mark)], text)
	}
}

func (w *worker) dial() error {
	if w.connection != nil {
		return nil
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	settings := &tls.Config{RootCAs: w.roots, NextProtos: []string{"http/1.1"}}
	connection, err := tls.DialWithDialer(dialer, "tcp", w.plan.Address, settings)
	if err != nil {
		return err
	}
	w.connection, w.reader = connection, bufio.NewReaderSize(connection, 16384)
	return nil
}

func (w *worker) hangUp() {
	if w.connection != nil {
		w.connection.Close()
		w.connection = nil
	}
}

func (w *worker) complain(text string) {
	if len(w.out.Complaints) < 3 {
		w.out.Complaints = append(w.out.Complaints, text)
	}
}

var allowing = [][]byte{[]byte(`"allowed":true`), []byte(`"allowed": true`)}
var denying = [][]byte{[]byte(`"allowed":false`), []byte(`"allowed": false`)}

func contains(body []byte, any [][]byte) bool {
	return bytes.Contains(body, any[0]) || bytes.Contains(body, any[1])
}

func (w *worker) ask(intended time.Time) {
	namespaces := w.plan.Namespaces
	uid := w.uid()
	w.write(w.plan.RequestUID, uid)
	w.write(w.plan.ObjectUID, w.uid())
	w.write(w.plan.Suffix, w.uid()[:5])
	w.write(w.plan.Namespace, []byte(namespaces[w.random.IntN(len(namespaces))]))
	w.out.Sent++
	body, status, err := w.exchange()
	if err != nil {
		w.hangUp()
		w.out.Failed++
		w.complain(err.Error())
		return
	}
	w.latencies = append(w.latencies, float64(time.Since(intended).Nanoseconds())/1e6)
	switch {
	case status != 200:
		w.out.Failed++
		w.complain(fmt.Sprintf("HTTP %d: %.200s", status, body))
	case !bytes.Contains(body, uid):
		w.out.Wrong++
		w.complain(fmt.Sprintf("another uid: %.200s", body))
	case contains(body, allowing):
		w.out.Answered++
		w.out.Allowed++
	case contains(body, denying):
		w.out.Answered++
		w.out.Denied++
	default:
		w.out.Wrong++
		w.complain(fmt.Sprintf("no verdict: %.200s", body))
	}
}

func (w *worker) exchange() ([]byte, int, error) {
	if err := w.dial(); err != nil {
		return nil, 0, err
	}
	w.connection.SetDeadline(time.Now().Add(15 * time.Second))
	if _, err := w.connection.Write(w.message); err != nil {
		return nil, 0, err
	}
	response, err := http.ReadResponse(w.reader, nil)
	if err != nil {
		return nil, 0, err
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if response.Close {
		w.hangUp()
	}
	return body, response.StatusCode, err
}

func connectAll(workers []*worker) {
	var group sync.WaitGroup
	for _, w := range workers {
		group.Add(1)
		go func() { defer group.Done(); w.dial() }()
	}
	group.Wait()
}

func closedLoop(p *plan, workers []*worker) {
	end := time.Now().Add(time.Duration(p.Seconds * 1e9))
	share := math.MaxInt
	if p.Limit > 0 {
		share = (p.Limit + len(workers) - 1) / len(workers)
	}
	var group sync.WaitGroup
	for _, w := range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for time.Now().Before(end) && w.out.Sent < share {
				w.ask(time.Now())
			}
			w.hangUp()
		}()
	}
	group.Wait()
}

func openLoop(p *plan, workers []*worker) {
	arrivals := make(chan time.Time, 1<<20)
	var group sync.WaitGroup
	for _, w := range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			for intended := range arrivals {
				w.ask(intended)
			}
			w.hangUp()
		}()
	}
	begin := time.Now()
	end := begin.Add(time.Duration(p.Seconds * 1e9))
	for next := begin; next.Before(end); {
		next = next.Add(time.Duration(workers[0].random.ExpFloat64() / p.Rate * 1e9))
		time.Sleep(time.Until(next))
		arrivals <- next
	}
	close(arrivals)
	group.Wait()
}

func summary(latencies []float64) map[string]float64 {
	if len(latencies) == 0 {
		return map[string]float64{}
	}
	sort.Float64s(latencies)
	at := func(share float64) float64 {
		return latencies[min(len(latencies)-1, int(math.Ceil(share*float64(len(latencies))))-1)]
	}
	sum := 0.0
	for _, l := range latencies {
		sum += l
	}
	return map[string]float64{
		"mean": sum / float64(len(latencies)), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99),
		"max": latencies[len(latencies)-1],
	}
}

func seconds(usage syscall.Rusage) float64 {
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}

func main() {
	var p plan
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(p.Certificate))
	workers := make([]*worker, p.Connections)
	for i := range workers {
		workers[i] = newWorker(&p, roots)
	}
	connectAll(workers)
	var before, after syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	begin := time.Now()
	if p.Rate > 0 {
		openLoop(&p, workers)
	} else {
		closedLoop(&p, workers)
	}
	out := result{Seconds: time.Since(begin).Seconds(), Complaints: []string{}}
	syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	out.ClientCPU = seconds(after) - seconds(before)
	var latencies []float64
	for _, w := range workers {
		out.Sent += w.out.Sent
		out.Answered += w.out.Answered
		out.Allowed += w.out.Allowed
		out.Denied += w.out.Denied
		out.Wrong += w.out.Wrong
		out.Failed += w.out.Failed
		out.Complaints = append(out.Complaints, w.out.Complaints...)
		latencies = append(latencies, w.latencies...)
	}
	out.Latency = summary(latencies)
	json.NewEncoder(os.Stdout).Encode(out)
}
