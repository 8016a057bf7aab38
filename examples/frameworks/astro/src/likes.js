/** What makes the page need a script. */
export function count(button) {
  let likes = 0;
  button.addEventListener('click', () => {
    likes += 1;
    button.querySelector('span').textContent = likes;
  });
}
