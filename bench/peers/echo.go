// A floor: net/http of Go's standard library answers every review with "allowed", over TLS.
package main

import (
	"encoding/json"
	"net/http"
	"os"
)

type review struct {
	Request struct {
		UID    string          `json:"uid"`
		Object json.RawMessage `json:"object"`
	} `json:"request"`
}

func echo(w http.ResponseWriter, r *http.Request) {
	var asked review
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, "not a review", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1",
		"kind":       "AdmissionReview",
		"response":   map[string]any{"uid": asked.Request.UID, "allowed": true},
	})
}

func main() {
	address, certificate, key := os.Args[1], os.Args[2], os.Args[3]
	if err := http.ListenAndServeTLS(address, certificate, key, http.HandlerFunc(echo)); err != nil {
		panic(err)
	}
}
