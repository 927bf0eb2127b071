// What scrolls can be reached with the keyboard, in each browser. What scrolls depends on the width of the window.
const scrolling = document.querySelectorAll("article pre, .table-wrapper, .math-wrapper");
const mark = () => {
  for (const region of scrolling) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
    else region.removeAttribute("tabindex");
  }
};
new ResizeObserver(mark).observe(document.querySelector("article") ?? document.body);  // also when a fold opens

// The landing page's frame is as high as the page in it.
addEventListener("message", ({ source, data }) => {
  const frame = document.getElementById("pay");
  if (frame?.contentWindow === source && data.height > 0) frame.style.height = `${data.height}px`;
});

// Two landmarks of the theme have no names.
document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "All pages");
document.querySelector(".toc-drawer")?.setAttribute("aria-label", "On this page");
