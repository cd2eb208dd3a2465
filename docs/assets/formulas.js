// Typesets what arithmatex marked: \(...\) within a line, \[...\] on a line of its own.
document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".arithmatex")) {
    const text = place.textContent.trim()
    katex.render(text.slice(2, -2), place, { displayMode: text.startsWith("\\["), throwOnError: false })
  }
})
