package h2

// credit accounts for the bytes of bodies that the client may send. It returns bytes in large pieces, since each
// WINDOW_UPDATE costs both sides more than the memory of the window.
type credit struct {
	left, whole int64 // bytes that the client may send now, and at most
	unsent      int64 // bytes that were read, and that the client does not know to be free
}

// take uses n bytes. It returns false if the client has exceeded the window.
func (w *credit) take(n int) bool {
	w.left -= int64(n)
	return w.left >= 0
}

// give frees n bytes. It returns the increment of the WINDOW_UPDATE that is due, or 0.
func (w *credit) give(n int) int {
	w.unsent += int64(n)
	if w.unsent < w.whole/4 {
		return 0
	}
	update := w.unsent
	w.left, w.unsent = w.left+update, 0
	return int(update)
}
