package telemetry

import (
	"context"
	"fmt"
	"net/http"
)

// Health answers /healthz (and /health), which says that the process is alive, and /readyz, which says whether it should
// get calls: 503 with the error of ready when not. The error is for everybody to read.
func Health(ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	alive := func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") }
	mux.HandleFunc("GET /healthz", alive)
	mux.HandleFunc("GET /health", alive)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(r.Context()); err != nil {
			answer(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	return mux
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
