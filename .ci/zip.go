// zip.go ARCHIVE FILE...: packs files into a ZIP archive, as a Go module proxy serves them.
package main

import (
	"archive/zip"
	"os"
)

func main() {
	archive, err := os.Create(os.Args[1])
	must(err)
	writer := zip.NewWriter(archive)
	for _, name := range os.Args[2:] {
		content, err := os.ReadFile(name)
		must(err)
		entry, err := writer.Create(name)
		must(err)
		_, err = entry.Write(content)
		must(err)
	}
	must(writer.Close())
	must(archive.Close())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
