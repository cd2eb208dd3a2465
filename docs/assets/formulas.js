// Typesets what arithmatex marked: \(...\) within a line, \[...\] on a line of its own.
document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".arithmatex")) {
    const text = place.textContent.trim()
    katex.render(text.slice(2, -2), place, { displayMode: text.startsWith("\\["), throwOnError: false })
  }
  // the table of contents has headings as text: those with formulas are copied from the headings themselves
  for (const entry of document.querySelectorAll('.md-nav__link[href^="#"] .md-ellipsis')) {
    const heading = document.getElementById(decodeURIComponent(entry.closest("a").hash.slice(1)))
    if (heading !== null && heading.querySelector(".arithmatex") !== null) {
      const copy = heading.cloneNode(true)
      for (const link of copy.querySelectorAll(".headerlink")) link.remove()
      entry.replaceChildren(...copy.childNodes)
    }
  }
})
