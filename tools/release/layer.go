package main

import (
	"archive/tar"
	"bytes"
)

// layer is the image's only layer: the program, and the directory for data of the user that runs it.
func (r *release) layer(program []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeReg, Name: "bowsprit", Mode: 0o755, Size: int64(len(program))},
		{Typeflag: tar.TypeDir, Name: imageData + "/", Mode: 0o700, Uid: 65532, Gid: 65532},
	} {
		h.ModTime, h.Format = r.time, tar.FormatUSTAR
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(program); err != nil {
				return nil, err
			}
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
